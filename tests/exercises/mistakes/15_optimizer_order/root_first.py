# exception: fully_shard(module) | the blocks first and the model last
for module in [model, *model.blocks]:
    fully_shard(module)
matrices = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others}]
return make_optimizer(groups)
