# wrong way: gradients are reduced in bfloat16: it should be float32
# [answer 1]
bits = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
for block in model.blocks:
    again = block is not model.blocks[-1]
    fully_shard(block, mp_policy=bits, reshard_after_forward=again)
fully_shard(model, mp_policy=bits)
