# wrong way: parameters are gathered in float32
# [answer 1]
for block in model.blocks:
    fully_shard(block, reshard_after_forward=block is not model.blocks[-1])
fully_shard(model)
