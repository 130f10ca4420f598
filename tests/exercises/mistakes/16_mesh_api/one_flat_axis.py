# wrong way: shards are gathered from the ranks [0, 1, 2, 3, 4, 5]
# [answer 1]
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
