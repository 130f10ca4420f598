# wrong value: second | a float: expected an int
# [answer 1]
try:
    content = json.loads(path.read_text())["message"]
    second = float(content["extraInfo"]["timestamp"])
    return Failure(rank, second, content["message"])
except (OSError, ValueError, KeyError, TypeError):
    return None
