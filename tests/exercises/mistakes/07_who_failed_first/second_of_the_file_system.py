# wrong value: second
# [answer 1]
try:
    said = json.loads(path.read_text())["message"]
    return Failure(rank, int(path.stat().st_mtime), said["message"])
except (OSError, ValueError):
    return None
