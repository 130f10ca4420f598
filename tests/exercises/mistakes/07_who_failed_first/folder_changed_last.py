# wrong value: the suspects of attempt_10
# [answer 2]
found = []
for node_rank, node in enumerate(nodes):
    newest = max(node.glob("attempt_*"), key=lambda folder: folder.stat().st_mtime)
    for local_rank in range(nproc_per_node):
        rank = node_rank * nproc_per_node + local_rank
        found.append(read_failure(newest / str(local_rank) / "error.json", rank))
causes = [failure for failure in found if failure and not failure.is_consequence]
if causes:
    first = min(failure.second for failure in causes)
    return [failure.rank for failure in causes if failure.second == first]
return [r for r, failure in enumerate(found) if not failure] if any(found) else []
