# wrong value: enter.bias is trained with weight decay, which is for matrices
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
return make_optimizer([{"params": list(model.parameters()), "weight_decay": DECAY}])
