# wrong way: forward gathers 1 times | a group for each of the 4 blocks
# [answer 1]
bits = MixedPrecisionPolicy(torch.bfloat16, reduce_dtype=torch.float32)
fully_shard(model, mp_policy=bits)
