# right: the groups are sorted after sharding, in one pass over the modules
for module in [*model.blocks, model]:
    fully_shard(module)
matrices, others = [], []
for name, parameter in model.named_parameters():
    (matrices if parameter.dim() > 1 else others).append(parameter)
return make_optimizer(
    [{"params": others}, {"params": matrices, "weight_decay": DECAY}]
)
