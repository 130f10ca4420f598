# wrong value: what it was at the beginning
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
parameters = list(model.blocks.parameters())
matrices = [p for p in parameters if p.dim() >= 2]
others = [p for p in parameters if p.dim() < 2]
groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others}]
return make_optimizer(groups)
