# wrong value: the files after they were looked through
# [answer 1]
epochs = []
for path in list(folder.glob("snapshot_*.pt")):
    match = NAME.fullmatch(path.name)
    if match and path.is_file() and read_snapshot(path) is None:
        path.unlink()
    elif match and path.is_file():
        epochs.append(int(match[1]))
return sorted(epochs, reverse=True)
