# hang: all_reduce | more often than others
# [answer 2]
correct = total = 0
for images, labels in loader:
    predicted = ddp_model.module(images).argmax(dim=1)
    counts = torch.tensor([int((predicted == labels).sum()), len(labels)])
    dist.all_reduce(counts)
    correct, total = correct + int(counts[0]), total + int(counts[1])
return correct, total
