# exception: FileNotFoundError | missing
# [answer 1]
said = json.loads(path.read_text())["message"]
return Failure(rank, int(said["extraInfo"]["timestamp"]), said["message"])
