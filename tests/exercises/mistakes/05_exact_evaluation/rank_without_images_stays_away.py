# hang: rank | only some ranks reach
# [answer 2]
counts = torch.zeros(2, dtype=torch.int64)
for images, labels in loader:
    predicted = ddp_model.module(images).argmax(dim=1)
    counts += torch.tensor([int((predicted == labels).sum()), len(labels)])
if counts[1] > 0:
    dist.all_reduce(counts)
return int(counts[0]), int(counts[1])
