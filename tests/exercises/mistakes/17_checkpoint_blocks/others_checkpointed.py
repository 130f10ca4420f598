# wrong way: the blocks were computed
# [answer 2]
x = block(x) if number in chosen else checkpoint(block, x, use_reentrant=False)
