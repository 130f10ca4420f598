# exception: with torch.no_grad: | write parentheses after it
was = model.training
model.eval()
total, correct, count = 0.0, 0, 0
with torch.no_grad:
    for inputs, labels in loader:
        scores = model(inputs)
        total += F.cross_entropy(scores, labels, reduction="sum").item()
        correct += (scores.argmax(dim=1) == labels).sum().item()
        count += len(labels)
model.train(was)
return total / count, correct, count
