# wrong value: shard should return the optimizer, and returned None
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
matrices = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others}]
make_optimizer(groups)
