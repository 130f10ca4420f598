# wrong value: the suspects | has the right items in another order
# [answer 2]
failures = {}
for node_rank, node in enumerate(nodes):
    newest = max(node.glob("attempt_*"), key=lambda folder: int(folder.name[8:]))
    for local_rank in range(nproc_per_node):
        rank = node_rank * nproc_per_node + local_rank
        path = newest / str(local_rank) / "error.json"
        failures[rank] = read_failure(path, rank)
there = [failure for failure in failures.values() if failure]
own = [failure for failure in there if not failure.is_consequence]
if own:
    own.sort(key=lambda failure: (failure.second, failure.message))
    return [failure.rank for failure in own if failure.second == own[0].second]
return [rank for rank, failure in failures.items() if not failure] if there else []
