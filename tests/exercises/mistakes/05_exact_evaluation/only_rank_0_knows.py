# wrong value: of 22 on | only one rank holds the result
# [answer 2]
counts = torch.zeros(2, dtype=torch.int64)
for images, labels in loader:
    predicted = ddp_model.module(images).argmax(dim=1)
    counts += torch.tensor([int((predicted == labels).sum()), len(labels)])
dist.reduce(counts, dst=0)
return int(counts[0]), int(counts[1])
