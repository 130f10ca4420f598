# exception: JSONDecodeError | cut off
# [answer 1]
if not path.exists():
    return None
said = json.loads(path.read_text())["message"]
return Failure(rank, int(said["extraInfo"]["timestamp"]), said["message"])
