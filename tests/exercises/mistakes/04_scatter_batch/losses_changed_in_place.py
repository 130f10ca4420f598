# wrong value: the losses that were passed
# [answer 2]
with torch.no_grad():
    for loss, size in zip(losses, sizes):
        loss *= size
return torch.stack(losses).sum() / sum(sizes)
