# wrong value: a lambda that calls `block` | the loop's last block by then
# [answer 2]
if number in chosen:
    x = checkpoint(lambda x: block(x), x, use_reentrant=False)
else:
    x = block(x)
