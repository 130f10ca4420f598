# wrong way: forward gathers 5 times
for module in [model.enter, *model.blocks, model.leave, model]:
    fully_shard(module)
matrices = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others}]
return make_optimizer(groups)
