# wrong value: evaluate | returned tuple (float, Tensor, int) | expected tuple[float, int, int]
was_training = model.training
model.eval()
loss_sum, correct, total = 0.0, 0, 0
with torch.no_grad():
    for inputs, labels in loader:
        scores = model(inputs)
        loss_sum += F.cross_entropy(scores, labels).item() * len(labels)
        correct += (scores.argmax(dim=1) == labels).sum()
        total += len(labels)
model.train(was_training)
return loss_sum / total, correct, total
