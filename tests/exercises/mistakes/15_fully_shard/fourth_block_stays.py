# wrong way: after forward, the blocks [] of 0 to 2 are whole
# [answer 1]
bits = MixedPrecisionPolicy(torch.bfloat16, reduce_dtype=torch.float32)
for number, block in enumerate(model.blocks):
    fully_shard(block, mp_policy=bits, reshard_after_forward=number != 3)
fully_shard(model, mp_policy=bits)
