# right: switches recording off for the outputs' lists, joins them and compares once
was_training = model.training
model.eval()
with torch.set_grad_enabled(False):
    pairs = [(model(inputs), labels) for inputs, labels in loader]
model.train(was_training)
scores = torch.cat([pair[0] for pair in pairs])
labels = torch.cat([pair[1] for pair in pairs])
correct = (scores.argmax(dim=-1) == labels).sum().item()
return F.cross_entropy(scores, labels).item(), correct, len(labels)
