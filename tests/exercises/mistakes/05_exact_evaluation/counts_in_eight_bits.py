# wrong value: the number of images of 359
# [answer 2]
counts = torch.zeros(2, dtype=torch.uint8)
for images, labels in loader:
    predicted = ddp_model.module(images).argmax(dim=1)
    counts[0] += (predicted == labels).sum()
    counts[1] += len(labels)
dist.all_reduce(counts)
return int(counts[0]), int(counts[1])
