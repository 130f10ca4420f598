# right: padded tensors in place of objects, loops in place of comprehensions
# [answer 1]
found = []
for path in folder.glob("snapshot_*.pt"):
    match = NAME.fullmatch(path.name)
    if match is not None and read_snapshot(path):
        found.append(int(match.group(1)))
found.sort()
found.reverse()
return found
# [answer 2]
length = torch.tensor(max(own, default=0) + 1)
dist.all_reduce(length, dist.ReduceOp.MAX)
have = torch.zeros(int(length), dtype=torch.int32)
have[own] = 1
dist.all_reduce(have, dist.ReduceOp.MIN)
common = have.nonzero().flatten().tolist()
return common[-1] if common else None
# [answer 3]
complete = complete_epochs(folder)
while len(complete) > keep:
    oldest = complete.pop()
    (folder / f"snapshot_{oldest}.pt").unlink()
