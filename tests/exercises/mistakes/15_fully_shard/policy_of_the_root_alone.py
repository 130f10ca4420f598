# wrong value: every group needs the policy
# [answer 1]
bits = MixedPrecisionPolicy(torch.bfloat16, reduce_dtype=torch.float32)
for block in model.blocks:
    fully_shard(block, reshard_after_forward=block is not model.blocks[-1])
fully_shard(model, mp_policy=bits)
