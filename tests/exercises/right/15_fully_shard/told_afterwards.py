# right: the last block is told later; blocks without memory one by one
# [answer 1]
bits = MixedPrecisionPolicy(torch.bfloat16, reduce_dtype=torch.float32)
for module in [*model.blocks, model]:
    fully_shard(module, mp_policy=bits)
model.blocks[-1].set_reshard_after_forward(False)
# [answer 2]
with torch.device("meta"):
    model = make_model()
shard(model)
for part in model.children():
    part.to_empty(device="cpu")
model.init_weights()
return model, make_optimizer(list(model.parameters()))
