# wrong value: attempt_10
# [answer 2]
failures, silent = [], []
for node_rank, node in enumerate(nodes):
    for local_rank in range(nproc_per_node):
        rank = node_rank * nproc_per_node + local_rank
        found = [
            read_failure(attempt / str(local_rank) / "error.json", rank)
            for attempt in node.glob("attempt_*")
        ]
        found = [failure for failure in found if failure]
        failures += found
        silent += [] if found else [rank]
causes = [failure for failure in failures if not failure.is_consequence]
if not causes:
    return silent if failures else []
first = min(failure.second for failure in causes)
return sorted({failure.rank for failure in causes if failure.second == first})
