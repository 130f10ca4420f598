# right: the candidates are voted on, one after the other
# [answer 1]
found = {}
for path in folder.iterdir():
    match = NAME.fullmatch(path.name)
    if match:
        found[int(match[1])] = read_snapshot(path)
return [epoch for epoch in sorted(found)[::-1] if found[epoch] is not None]
# [answer 2]
candidate = torch.tensor(max(own, default=-1))
while True:
    dist.all_reduce(candidate, dist.ReduceOp.MIN)
    have = torch.tensor(int(int(candidate) in own))
    dist.all_reduce(have, dist.ReduceOp.MIN)
    if candidate < 0:
        return None
    if have:
        return int(candidate)
    candidate = torch.tensor(max([e for e in own if e < candidate], default=-1))
