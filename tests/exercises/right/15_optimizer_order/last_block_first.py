# right: blocks in another order, their resharding written down; a group added later
for block in reversed(model.blocks):
    fully_shard(block, reshard_after_forward=True)
model = fully_shard(model)
optimizer = make_optimizer([{"params": [p for p in model.parameters() if p.ndim < 2]}])
matrices = [p for p in model.parameters() if p.ndim >= 2]
optimizer.add_param_group({"params": matrices, "weight_decay": DECAY})
return optimizer
