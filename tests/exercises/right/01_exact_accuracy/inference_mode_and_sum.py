# right: inference mode, the sum as reduction, tensors until the end
was_training = model.training
model.train(False)
loss_sum, correct, total = 0.0, 0, 0
for inputs, labels in loader:
    with torch.inference_mode():
        scores = model(inputs)
        loss_sum += F.cross_entropy(scores, labels, reduction="sum")
        correct += (scores.max(dim=1).indices == labels).sum()
    total += labels.numel()
if was_training:
    model.train()
return loss_sum.item() / total, correct.item(), total
