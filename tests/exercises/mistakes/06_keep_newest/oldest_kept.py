# wrong value: the files left, of 6 to 11
# [answer 3]
for epoch in complete_epochs(folder)[:-keep]:
    (folder / f"snapshot_{epoch}.pt").unlink()
