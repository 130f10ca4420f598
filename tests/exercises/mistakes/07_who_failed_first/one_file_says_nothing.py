# wrong value: the suspects, rank 2 alone having left a file
# [answer 2]
failures, silent = [], []
for node_rank, node in enumerate(nodes):
    newest = max(node.glob("attempt_*"), key=lambda path: int(path.name.split("_")[1]))
    for local_rank in range(nproc_per_node):
        rank = node_rank * nproc_per_node + local_rank
        failure = read_failure(newest / str(local_rank) / "error.json", rank)
        (silent if failure is None else failures).append(failure or rank)
causes = [failure for failure in failures if not failure.is_consequence]
if not causes:
    return silent if len(failures) > 1 else []
first = min(failure.second for failure in causes)
return [failure.rank for failure in causes if failure.second == first]
