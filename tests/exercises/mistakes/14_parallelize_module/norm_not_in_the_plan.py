# wrong value: norm.weight is a plain tensor
# [answer 1]
plan = {
    "mlp": PrepareModuleInput(
        input_layouts=Shard(1), desired_input_layouts=Replicate()
    ),
    "mlp.gate": ColwiseParallel(),
    "mlp.up": ColwiseParallel(),
    "mlp.down": RowwiseParallel(output_layouts=Shard(1)),
}
parallelize_module(block, mesh, plan)
