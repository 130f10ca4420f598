# wrong value: the mean of all rows | a division by zero
# [answer 2]
least = torch.tensor(len(batches))
dist.all_reduce(least, op=dist.ReduceOp.MIN)
for batch in batches[: int(least)]:
    total[:3] += batch.sum(dim=0)
    total[3] += len(batch)
dist.all_reduce(total)
