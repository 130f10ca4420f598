# wrong value: the files left, keeping 2 of 2
# [answer 3]
complete = complete_epochs(folder)
if len(complete) >= keep:
    for epoch in complete[-(len(complete) - keep) :]:
        (folder / f"snapshot_{epoch}.pt").unlink()
