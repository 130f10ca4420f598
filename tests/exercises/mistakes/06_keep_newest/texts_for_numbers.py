# wrong value: the epochs of four complete snapshots
# [answer 1]
names = [NAME.fullmatch(path.name) for path in folder.iterdir()]
epochs = sorted((match[1] for match in names if match), key=int, reverse=True)
return [e for e in epochs if read_snapshot(folder / f"snapshot_{e}.pt") is not None]
