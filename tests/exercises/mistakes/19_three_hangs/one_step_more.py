# wrong value: the number of steps | is 43, expected 42
# [answer 1]
mean = loss.clone()
dist.all_reduce(mean)
return None if dist.get_rank() else float(mean / dist.get_world_size())
# [answer 2]
for batch in batches:
    total[:3] += batch.sum(dim=0)
    total[3] += len(batch)
dist.all_reduce(total)
return total[:3] / total[3]
# [answer 3]
mean = loss.clone()
dist.all_reduce(mean)
if mean / dist.get_world_size() < limit:
    next(losses)
    return step + 1
