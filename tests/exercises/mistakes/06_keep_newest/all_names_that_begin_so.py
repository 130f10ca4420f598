# wrong value: the files left of 1, 10, 11 and others | has 2 items, expected 4
# [answer 3]
for epoch in complete_epochs(folder)[keep:]:
    for path in folder.glob(f"snapshot_{epoch}*.pt"):
        path.unlink()
