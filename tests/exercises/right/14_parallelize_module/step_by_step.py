# right: two calls of parallelize_module, the layouts named one by one
# [answer 1]
slices = Shard(1)
parallelize_module(block.norm, mesh, SequenceParallel(sequence_dim=1))
columns = ColwiseParallel(input_layouts=Replicate(), output_layouts=Shard(-1))
rows = RowwiseParallel(input_layouts=Shard(-1), output_layouts=slices)
parallelize_module(block.mlp, mesh, {"gate": columns, "up": columns, "down": rows})
enter = PrepareModuleInput(input_layouts=(slices,), desired_input_layouts=(Replicate(),))
parallelize_module(block.mlp, mesh, enter)
# [answer 2]
gradients = {}
for name, parameter in block.named_parameters():
    whole = parameter.grad.redistribute(placements=[Replicate()])
    gradients[name] = whole.to_local().clone()
return gradients
