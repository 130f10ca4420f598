# wrong way: this rank read 22 images of 22
# [answer 2]
correct = total = 0
for images, labels in DataLoader(loader.dataset.dataset, batch_size):
    predicted = ddp_model.module(images).argmax(dim=1)
    correct, total = correct + int((predicted == labels).sum()), total + len(labels)
return correct, total
