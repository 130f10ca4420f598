# wrong value: cut off from the weights
# [answer 2]
total = sum(loss.item() * size for loss, size in zip(losses, sizes, strict=True))
return torch.tensor(total / sum(sizes), dtype=losses[0].dtype)
