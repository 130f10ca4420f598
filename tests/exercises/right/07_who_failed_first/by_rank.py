# right: one dict of all ranks, the attempts counted
# [answer 1]
if not path.is_file():
    return None
try:
    message = json.loads(path.read_bytes())["message"]
except (json.JSONDecodeError, KeyError):
    return None
return Failure(rank, int(float(message["extraInfo"]["timestamp"])), message["message"])
# [answer 2]
words = {}
for rank in range(len(nodes) * nproc_per_node):
    node, local_rank = nodes[rank // nproc_per_node], str(rank % nproc_per_node)
    attempt = len(list(node.glob("attempt_*"))) - 1
    path = node / f"attempt_{attempt}" / local_rank / "error.json"
    words[rank] = read_failure(path, rank)
spoken = [failure for failure in words.values() if failure]
own = sorted((f.second, f.rank) for f in spoken if not f.is_consequence)
if own:
    return [rank for second, rank in own if second == own[0][0]]
return [rank for rank in words if spoken and words[rank] is None]
