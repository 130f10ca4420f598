# right: shares by a list, counts broadcast by each rank
# [answer 1]
mine = [i for i in range(len(dataset)) if i % world_size == world_size - 1 - rank]
return Subset(dataset, indices=mine)
# [answer 2]
network, correct, total = ddp_model.module, 0, 0
for batch, labels in loader:
    hits = network(batch).max(dim=1).indices.eq(labels)
    correct, total = correct + hits.sum().item(), total + hits.numel()
sums = [0, 0]
for source in range(dist.get_world_size()):
    pair = torch.tensor([correct, total])
    dist.broadcast(pair, src=source)
    sums = [a + b for a, b in zip(sums, pair.tolist())]
return tuple(sums)
