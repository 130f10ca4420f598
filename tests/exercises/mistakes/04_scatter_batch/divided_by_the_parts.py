# wrong value: the loss of parts of [4, 4, 4]
# [answer 2]
total = sum(loss * size for loss, size in zip(losses, sizes, strict=True))
return total / len(losses)
