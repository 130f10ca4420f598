# right: one list of (rank, failure), sorted once
# [answer 1]
text = path.read_text() if path.exists() else ""
try:
    said = json.loads(text).get("message", {})
except json.JSONDecodeError:
    return None
return Failure(rank, int(said["extraInfo"]["timestamp"]), said["message"])
# [answer 2]
pairs = []
for node in nodes:
    attempt = sorted(node.glob("attempt_*"), key=lambda path: (len(path.name), path.name))[-1]
    for local_rank in map(str, range(nproc_per_node)):
        rank = len(pairs)
        pairs.append((rank, read_failure(attempt / local_rank / "error.json", rank)))
own = [(f.second, rank) for rank, f in pairs if f and not f.is_consequence]
if own:
    return [rank for second, rank in own if second == min(own)[0]]
nobody = all(failure is None for _, failure in pairs)
return [] if nobody else [rank for rank, failure in pairs if failure is None]
