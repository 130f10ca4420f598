# hang: a rank without images | ddp_model.module | read: docs/lessons/05_ddp_spawn.rst
# [answer 2]
counts = torch.zeros(2, dtype=torch.int64)
for images, labels in loader:
    predicted = ddp_model(images).argmax(dim=1)
    counts += torch.tensor([int((predicted == labels).sum()), len(labels)])
dist.all_reduce(counts)
return int(counts[0]), int(counts[1])
