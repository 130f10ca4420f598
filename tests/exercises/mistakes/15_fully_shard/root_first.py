# exception: the blocks first and the model last
# [answer 1]
bits = MixedPrecisionPolicy(torch.bfloat16, reduce_dtype=torch.float32)
fully_shard(model, mp_policy=bits)
for block in model.blocks:
    again = block is not model.blocks[-1]
    fully_shard(block, mp_policy=bits, reshard_after_forward=again)
