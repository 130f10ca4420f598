# wrong way: forward gathers 7 times
for block in model.blocks:
    for layer in block:
        if list(layer.parameters()):
            fully_shard(layer)
fully_shard(model)
matrices = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others}]
return make_optimizer(groups)
