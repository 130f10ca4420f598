# wrong value: the output with
# [answer 2]
block.eval()
x = checkpoint(block, x, use_reentrant=False) if number in chosen else block(x)
