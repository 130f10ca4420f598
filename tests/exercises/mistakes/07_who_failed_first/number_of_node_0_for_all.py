# wrong value: newest attempt of its own | the suspects
# [answer 2]
failures, silent = [], []
newest = max(int(path.name.split("_")[1]) for path in nodes[0].iterdir())
for node_rank, node in enumerate(nodes):
    for local_rank in range(nproc_per_node):
        rank = node_rank * nproc_per_node + local_rank
        path = node / f"attempt_{newest}" / str(local_rank) / "error.json"
        failure = read_failure(path, rank)
        (silent if failure is None else failures).append(failure or rank)
causes = [failure for failure in failures if not failure.is_consequence]
if not causes:
    return silent if failures else []
first = min(failure.second for failure in causes)
return [failure.rank for failure in causes if failure.second == first]
