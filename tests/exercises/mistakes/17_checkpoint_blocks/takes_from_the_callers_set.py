# wrong value: the caller's set `chosen`, afterwards
# [answer 2]
if number in chosen:
    chosen.remove(number)
    x = checkpoint(block, x, use_reentrant=False)
else:
    x = block(x)
