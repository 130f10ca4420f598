# wrong value: the gradient of
# [answer 2]
if number in chosen:
    x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
else:
    x = block(x)
