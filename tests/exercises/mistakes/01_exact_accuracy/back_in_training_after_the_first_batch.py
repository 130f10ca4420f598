# wrong value: dropout must be off | the number recognized
was_training = model.training
model.eval()
loss_sum, correct, total = 0.0, 0, 0
with torch.no_grad():
    for inputs, labels in loader:
        scores = model(inputs)
        model.train(was_training)
        loss_sum += F.cross_entropy(scores, labels).item() * len(labels)
        correct += int((scores.argmax(dim=1) == labels).sum())
        total += len(labels)
return loss_sum / total, correct, total
