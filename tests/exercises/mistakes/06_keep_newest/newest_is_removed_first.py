# wrong value: the files left, of 6 to 11
# [answer 3]
complete = complete_epochs(folder)
while len(complete) > keep:
    newest = complete.pop(0)
    (folder / f"snapshot_{newest}.pt").unlink()
