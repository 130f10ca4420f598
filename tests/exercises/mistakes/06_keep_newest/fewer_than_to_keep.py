# wrong value: the files left, keeping 3 of 2
# [answer 3]
oldest_first = complete_epochs(folder)[::-1]
for epoch in oldest_first[: len(oldest_first) - keep]:
    (folder / f"snapshot_{epoch}.pt").unlink()
