# wrong value: mlp returns [ | output_layouts of down
# [answer 1]
plan = {
    "norm": SequenceParallel(),
    "mlp": PrepareModuleInput(
        input_layouts=Shard(1), desired_input_layouts=Replicate()
    ),
    "mlp.gate": ColwiseParallel(),
    "mlp.up": ColwiseParallel(),
    "mlp.down": RowwiseParallel(),
}
parallelize_module(block, mesh, plan)
