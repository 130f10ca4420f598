# wrong value: message
# [answer 1]
try:
    said = json.loads(path.read_text())["message"]
    stack = said["extraInfo"]["py_callstack"].splitlines()
    return Failure(rank, int(said["extraInfo"]["timestamp"]), stack[0])
except (OSError, ValueError, KeyError):
    return None
