# wrong value: your code left gradients switched off
was_training = model.training
model.eval()
torch.set_grad_enabled(False)
loss_sum, correct, total = 0.0, 0, 0
for inputs, labels in loader:
    scores = model(inputs)
    loss_sum += F.cross_entropy(scores, labels).item() * len(labels)
    correct += int((scores.argmax(dim=1) == labels).sum())
    total += len(labels)
model.train(was_training)
return loss_sum / total, correct, total
