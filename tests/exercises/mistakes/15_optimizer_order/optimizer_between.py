# wrong value: enter.weight | not in the optimizer | what it was at the beginning
for block in model.blocks:
    fully_shard(block)
matrices = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others}]
optimizer = make_optimizer(groups)
fully_shard(model)
return optimizer
