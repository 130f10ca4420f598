# wrong value: the epochs of four complete snapshots | another order
# [answer 1]
paths = sorted(folder.glob("snapshot_*.pt"), reverse=True)
return [
    int(NAME.fullmatch(path.name)[1])
    for path in paths
    if NAME.fullmatch(path.name) and read_snapshot(path) is not None
]
