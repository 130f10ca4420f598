# wrong value: must return (images recognized, images)
# [answer 2]
counts = torch.zeros(2, dtype=torch.int64)
for images, labels in loader:
    predicted = ddp_model.module(images).argmax(dim=1)
    counts += torch.tensor([int((predicted == labels).sum()), len(labels)])
dist.all_reduce(counts)
