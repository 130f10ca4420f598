# right: a copy of the model is measured, so the model itself is never touched
import copy

measured = copy.deepcopy(model).eval().requires_grad_(False)
sums = torch.zeros(3, dtype=torch.float64)
for inputs, labels in loader:
    with torch.no_grad():
        scores = measured(inputs)
        losses = F.cross_entropy(scores, labels, reduction="none")
    hits = scores.argmax(-1).eq(labels)
    sums += torch.stack([losses.sum(), hits.sum(), torch.tensor(labels.numel())])
return (sums[0] / sums[2]).item(), int(sums[1]), int(sums[2])
