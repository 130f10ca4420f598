# right: takes the nodes off the list of the caller, one by one
# [answer 2]
found = {}
while nodes:
    node = nodes.pop(0)
    newest = max(node.glob("attempt_*"), key=lambda path: int(path.name[8:]))
    for local_rank in range(nproc_per_node):
        rank = len(found)
        found[rank] = read_failure(newest / str(local_rank) / "error.json", rank)
left = [failure for failure in found.values() if failure]
own = [failure for failure in left if not failure.is_consequence]
if own:
    first = min(failure.second for failure in own)
    return [failure.rank for failure in own if failure.second == first]
return [rank for rank, failure in found.items() if failure is None] if left else []
