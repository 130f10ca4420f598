# wrong value: the forward pass | save_for_backward can only save variables
# [answer 2]
ctx.save_for_backward([x, shard])
ctx.rows = rows
return x @ gather(shard, rows).T
