# exception: RuntimeError | cut off
# [answer 1]
names = [NAME.fullmatch(path.name) for path in folder.iterdir()]
epochs = sorted((int(match[1]) for match in names if match), reverse=True)
for epoch in epochs:
    torch.load(folder / f"snapshot_{epoch}.pt", weights_only=True)
return epochs
