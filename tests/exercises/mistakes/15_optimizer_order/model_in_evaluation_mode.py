# wrong value: the model is left in evaluation mode
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
model.requires_grad_(True)
matrices = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others}]
optimizer = make_optimizer(groups)
model.eval()
return optimizer
