# wrong value: the norm of a gradient that is not clipped | is a `return` missing | return nothing (None)
# [answer 2]
sq = torch.cat(shards).square().sum()
dist.all_reduce(sq)
norm = print(sq.sqrt())
shards = [s for s in shards]
