# wrong way: parameters of other blocks
for block in model.blocks:
    fully_shard(block, reshard_after_forward=False)
fully_shard(model)
matrices = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others}]
return make_optimizer(groups)
