# right: the optimizer comes first and gets its parameters afterwards
names = [[], []]
for name, p in model.named_parameters():
    names[p.dim() < 2].append(name)
old = dict(model.named_parameters())
groups = [{"params": [old[n] for n in names[0]], "weight_decay": DECAY}]
optimizer = make_optimizer([*groups, {"params": [old[n] for n in names[1]]}])
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
new = dict(model.named_parameters())
for group, of_group in zip(optimizer.param_groups, names):
    group["params"] = [new[n] for n in of_group]
return optimizer
