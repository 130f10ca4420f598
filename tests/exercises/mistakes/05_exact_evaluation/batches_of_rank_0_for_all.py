# hang: all_reduce | more often than others
# [answer 2]
counts = torch.zeros(2, dtype=torch.int64)
for images, labels in loader:
    mine = torch.zeros(2, dtype=torch.int64)
    mine[0] = (ddp_model.module(images).argmax(dim=1) == labels).sum()
    mine[1] = len(labels)
    work = dist.all_reduce(mine, async_op=True)
    work.wait()
    counts += mine
return int(counts[0]), int(counts[1])
