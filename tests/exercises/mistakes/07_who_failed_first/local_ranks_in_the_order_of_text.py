# wrong value: the suspects | another order | [10, 2, 22]
# [answer 2]
own, lost, silent = [], [], []
for node_rank, node in enumerate(nodes):
    newest = max(node.glob("attempt_*"), key=lambda path: int(path.name[8:]))
    for local_rank in sorted(str(number) for number in range(nproc_per_node)):
        rank = node_rank * nproc_per_node + int(local_rank)
        failure = read_failure(newest / local_rank / "error.json", rank)
        if failure is None:
            silent.append(rank)
        elif failure.is_consequence:
            lost.append(rank)
        else:
            own.append(failure)
if own:
    first = min(failure.second for failure in own)
    return [failure.rank for failure in own if failure.second == first]
return silent if lost else []
