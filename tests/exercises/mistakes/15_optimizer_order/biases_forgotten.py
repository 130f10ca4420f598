# wrong value: enter.bias | not in the optimizer | what it was at the beginning
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
matrices = [p for p in model.parameters() if p.dim() >= 2]
return make_optimizer([{"params": matrices, "weight_decay": DECAY}])
