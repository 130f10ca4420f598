# wrong value: what it was at the beginning
parameters = list(model.parameters())
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
matrices = [p for p in parameters if p.dim() >= 2]
others = [p for p in parameters if p.dim() < 2]
groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others}]
return make_optimizer(groups)
