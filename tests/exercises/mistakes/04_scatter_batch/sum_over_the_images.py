# wrong value: the loss of parts of [4, 4, 4]
# [answer 2]
return sum(loss * size for loss, size in zip(losses, sizes, strict=True))
