# wrong value: the number of 7 images | a dataset of 11
was_training = model.training
model.eval()
loss, recognized, images = 0.0, 0, len(loader.dataset)
with torch.no_grad():
    for inputs, labels in loader:
        scores = model(inputs)
        loss += F.cross_entropy(scores, labels, reduction="sum").item()
        recognized += int((scores.argmax(dim=1) == labels).sum())
model.train(was_training)
return loss / images, recognized, images
