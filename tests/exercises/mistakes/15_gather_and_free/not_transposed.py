# exception: line
# [answer 2]
ctx.save_for_backward(x, shard)
ctx.rows = rows
return x @ gather(shard, rows)
