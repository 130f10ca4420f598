# wrong value: the files left, of 6 to 11 | 'snapshot_6.pt'
# [answer 3]
paths = [folder / f"snapshot_{epoch}.pt" for epoch in complete_epochs(folder)]
paths.sort(key=lambda path: path.stat().st_mtime, reverse=True)
for path in paths[keep:]:
    path.unlink()
