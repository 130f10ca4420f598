# wrong value: blocks.0.0.weight is trained with weight decay, which is for matrices
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
named = dict(model.named_parameters())
matrices = [p for name, p in named.items() if name.endswith("weight")]
others = [p for name, p in named.items() if not name.endswith("weight")]
groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others}]
return make_optimizer(groups)
