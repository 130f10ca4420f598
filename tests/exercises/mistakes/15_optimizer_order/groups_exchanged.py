# wrong value: enter.weight is trained without weight decay
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
matrices = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": others, "weight_decay": DECAY}, {"params": matrices}]
return make_optimizer(groups)
