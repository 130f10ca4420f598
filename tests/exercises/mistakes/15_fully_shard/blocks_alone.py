# wrong value: enter.weight is still whole on this rank
# [answer 1]
bits = MixedPrecisionPolicy(torch.bfloat16, reduce_dtype=torch.float32)
for block in model.blocks:
    again = block is not model.blocks[-1]
    fully_shard(block, mp_policy=bits, reshard_after_forward=again)
