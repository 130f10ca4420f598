# exception: FileNotFoundError | newest attempt of its own
# [answer 2]
failures, silent = [], []
attempts = [path.name for path in nodes[0].iterdir()]
newest = max(attempts, key=lambda name: int(name.split("_")[1]))
for node_rank, node in enumerate(nodes):
    assert list((node / newest).iterdir())
    for local_rank in range(nproc_per_node):
        rank = node_rank * nproc_per_node + local_rank
        failure = read_failure(node / newest / str(local_rank) / "error.json", rank)
        (silent if failure is None else failures).append(failure or rank)
causes = [failure for failure in failures if not failure.is_consequence]
if not causes:
    return silent if failures else []
first = min(failure.second for failure in causes)
return [failure.rank for failure in causes if failure.second == first]
