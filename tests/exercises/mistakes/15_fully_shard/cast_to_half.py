# wrong value: the shard of enter.weight is bfloat16, not float32
# [answer 1]
model.bfloat16()
for block in model.blocks:
    fully_shard(block, reshard_after_forward=block is not model.blocks[-1])
fully_shard(model)
