# right: the older kind of checkpoint, whose gradients are the same
# [answer 2]
if number in chosen:
    x = checkpoint(block, x, use_reentrant=True)
else:
    x = block(x)
