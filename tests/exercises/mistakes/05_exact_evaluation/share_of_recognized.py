# wrong value: of 22 on
# [answer 2]
counts = torch.zeros(2, dtype=torch.float64)
for images, labels in loader:
    predicted = ddp_model.module(images).argmax(dim=1)
    counts += torch.tensor([(predicted == labels).double().mean(), len(labels)])
dist.all_reduce(counts)
return int(counts[0] * len(dataset)), int(counts[1])
