# wrong value: enter.weight is trained without weight decay
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
return make_optimizer([{"params": list(model.parameters())}])
