# wrong value: the files after they were looked through
# [answer 1]
epochs = []
for path in list(folder.iterdir()):
    match = NAME.fullmatch(path.name)
    if match and read_snapshot(path) is None:
        path.rename(folder / f"damaged_{path.name}")
    elif match:
        epochs.append(int(match[1]))
return sorted(epochs, reverse=True)
