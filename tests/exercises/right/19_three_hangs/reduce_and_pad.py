# right: reduce to rank 0; as many rounds as the rank with most batches; all_gather
# [answer 1]
mean = loss.clone()
dist.reduce(mean, 0)
return float(mean / dist.get_world_size()) if dist.get_rank() == 0 else None
# [answer 2]
most = torch.tensor(len(batches))
dist.all_reduce(most, op=dist.ReduceOp.MAX)
for number in range(int(most)):
    both = torch.zeros(4, dtype=torch.float64)
    if number < len(batches):
        batch = batches[number]
        both = torch.cat([batch.sum(dim=0), torch.tensor([float(len(batch))])])
    dist.all_reduce(both)
    total += both
# [answer 3]
everyone = [torch.empty_like(loss) for _ in range(dist.get_world_size())]
dist.all_gather(everyone, loss)
if sum(map(float, everyone)) / len(everyone) < limit:
    return step
