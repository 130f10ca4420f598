# wrong value: the files left | has 2 items, expected 6
# [answer 3]
kept = {f"snapshot_{epoch}.pt" for epoch in complete_epochs(folder)[:keep]}
for path in folder.iterdir():
    if path.name not in kept:
        path.unlink()
