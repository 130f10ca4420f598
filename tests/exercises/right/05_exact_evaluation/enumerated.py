# right: shares by numpy-like slices, a forward pass under inference mode
# [answer 1]
return Subset(dataset, list(range(len(dataset)))[rank::world_size])
# [answer 2]
network, found = ddp_model.module, []
with torch.inference_mode():
    for images, labels in loader:
        found.append(torch.eq(network(images).topk(1).indices.flatten(), labels))
hits = torch.cat(found) if found else torch.zeros(0, dtype=torch.bool)
counts = torch.stack([hits.sum(), torch.tensor(hits.numel())])
work = dist.all_reduce(counts, op=dist.ReduceOp.SUM, async_op=True)
work.wait()
recognized, total = counts.tolist()
return recognized, total
