# wrong value: mean_loss | returned float, expected Tensor
# [answer 2]
return sum(loss.item() * n for loss, n in zip(losses, sizes)) / sum(sizes)
