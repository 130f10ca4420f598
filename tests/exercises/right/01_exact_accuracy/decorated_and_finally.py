# right: an inner function without gradients, the mode put back in `finally`
modes = {module: module.training for module in model.modules()}

@torch.no_grad()
def measure():
    totals = [0.0, 0, 0]
    for inputs, labels in loader:
        scores = model(inputs)
        totals[0] += len(labels) * float(F.cross_entropy(input=scores, target=labels))
        totals[1] += torch.count_nonzero(scores.max(1)[1] == labels).item()
        totals[2] += labels.size(0)
    return totals[0] / totals[2], totals[1], totals[2]

try:
    model.eval()
    return measure()
finally:
    for module, mode in modes.items():
        module.training = mode
