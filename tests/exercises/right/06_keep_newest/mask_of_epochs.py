# right: a mask of epochs, reduced with MIN
# [answer 1]
import os

found = {}
for entry in os.scandir(folder):
    match = NAME.fullmatch(entry.name)
    if match and read_snapshot(Path(entry.path)) is not None:
        found[int(match.group(1))] = True
return sorted(found, reverse=True)
# [answer 2]
top = torch.tensor([own[0] if own else -1])
dist.all_reduce(top, dist.ReduceOp.MAX)
mask = torch.zeros(int(top) + 1, dtype=torch.int64)
mask[own] = 1
dist.all_reduce(mask, dist.ReduceOp.MIN)
both = mask.nonzero().flatten().tolist()
return both[-1] if both else None
# [answer 3]
for epoch in complete_epochs(folder)[keep:]:
    os.remove(folder / f"snapshot_{epoch}.pt") if False else (
        folder / f"snapshot_{epoch}.pt"
    ).unlink()
