# right: blocks in reverse; the last one told afterwards; lists and names written out
# [answer 1]
how = {"mp_policy": MixedPrecisionPolicy(
    param_dtype=torch.bfloat16, reduce_dtype=torch.float32
)}
*others, last = model.blocks
fully_shard(last, reshard_after_forward=False, **how)
for block in reversed(others):
    fully_shard(block, reshard_after_forward=True, **how)
fully_shard(model, **how)
# [answer 2]
device = torch.device("meta")
device.__enter__()
model = make_model()
device.__exit__(None, None, None)
shard(model)
model = model.to_empty(device=torch.device("cpu"))
model.init_weights()
optimizer = make_optimizer([p for _, p in model.named_parameters()])
return model, optimizer
