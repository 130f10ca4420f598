# wrong value: one of the two newest that are complete
# [answer 3]
names = [NAME.fullmatch(path.name) for path in folder.iterdir()]
epochs = sorted((int(match[1]) for match in names if match), reverse=True)
for epoch in epochs[keep:]:
    (folder / f"snapshot_{epoch}.pt").unlink()
