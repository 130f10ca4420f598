# wrong value: the epochs that can be read
# [answer 1]
names = [NAME.fullmatch(path.name) for path in folder.iterdir()]
epochs = sorted((int(match[1]) for match in names if match), reverse=True)
return [
    epoch
    for epoch in epochs
    if (folder / f"snapshot_{epoch}.pt").is_file()
    and (folder / f"snapshot_{epoch}.pt").stat().st_size > 0
]
