# wrong value: the mean loss of 11 images | of probabilities
was = model.training
model.eval()
total, correct, count = 0.0, 0, 0
with torch.no_grad():
    for inputs, labels in loader:
        scores = model(inputs).softmax(dim=1)
        total += F.cross_entropy(scores, labels, reduction="sum").item()
        correct += (scores.argmax(dim=1) == labels).sum().item()
        count += len(labels)
model.train(was)
return total / count, correct, count
