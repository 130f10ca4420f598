# wrong value: the suspects | broken pipe
# [answer 2]
failures, silent = [], []
for node_rank, node in enumerate(nodes):
    newest = max(node.glob("attempt_*"), key=lambda path: int(path.name.split("_")[1]))
    for local_rank in range(nproc_per_node):
        rank = node_rank * nproc_per_node + local_rank
        failure = read_failure(newest / str(local_rank) / "error.json", rank)
        (silent if failure is None else failures).append(failure or rank)
causes = [f for f in failures if not f.message.startswith("RuntimeError")]
if not causes:
    return silent if failures else []
first = min(failure.second for failure in causes)
return [failure.rank for failure in causes if failure.second == first]
