# wrong value: of 11 images in shuffled batches of 4
mode = model.training
model.eval()
with torch.no_grad():
    scores = torch.cat([model(images) for images, _ in loader])
    labels = torch.cat([labels for _, labels in loader])
model.train(mode)
loss = F.cross_entropy(scores, labels).item()
return loss, int((scores.argmax(1) == labels).sum()), len(labels)
