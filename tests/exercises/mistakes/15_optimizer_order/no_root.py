# wrong value: the model itself was not given to fully_shard
for module in [model.enter, *model.blocks, model.leave]:
    fully_shard(module)
matrices = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others}]
return make_optimizer(groups)
