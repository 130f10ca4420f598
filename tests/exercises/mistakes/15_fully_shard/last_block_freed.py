# wrong way: after forward, the blocks [] of 0 to 3 are whole
# [answer 1]
bits = MixedPrecisionPolicy(torch.bfloat16, reduce_dtype=torch.float32)
for block in model.blocks:
    fully_shard(block, mp_policy=bits)
fully_shard(model, mp_policy=bits)
