# wrong value: left in evaluation mode | still in training mode: module, module.0
# [answer 2]
counts = torch.zeros(2, dtype=torch.int64)
for images, labels in loader:
    predicted = ddp_model.module(images).argmax(dim=1)
    counts += torch.tensor([int((predicted == labels).sum()), len(labels)])
dist.all_reduce(counts)
ddp_model.module.train()
return int(counts[0]), int(counts[1])
