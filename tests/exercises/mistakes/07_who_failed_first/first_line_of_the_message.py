# wrong value: message | 63 pixels\nof image 5
# [answer 1]
try:
    content = json.loads(path.read_text())["message"]
    first, second = content["message"].splitlines()[0], content["extraInfo"]["timestamp"]
    return Failure(rank, int(second), first)
except (OSError, ValueError, KeyError, TypeError):
    return None
