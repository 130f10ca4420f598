# wrong value: not even a folder
# [answer 2]
found = {}
silent = []
for node_rank, node in enumerate(nodes):
    attempts = sorted(node.glob("attempt_*"), key=lambda p: int(p.name.split("_")[1]))
    if not attempts:
        continue
    for folder in attempts[-1].iterdir():
        rank = node_rank * nproc_per_node + int(folder.name)
        failure = read_failure(folder / "error.json", rank)
        if failure is None:
            silent.append(rank)
        else:
            found[rank] = failure
if not found:
    return []
causes = [f for f in found.values() if not f.is_consequence]
if not causes:
    return sorted(silent)
first = min(f.second for f in causes)
return sorted(f.rank for f in causes if f.second == first)
