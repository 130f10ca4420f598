# wrong value: the files left, keeping none of 2
# [answer 3]
oldest_first = sorted(complete_epochs(folder))
for epoch in oldest_first[:-keep]:
    (folder / f"snapshot_{epoch}.pt").unlink()
