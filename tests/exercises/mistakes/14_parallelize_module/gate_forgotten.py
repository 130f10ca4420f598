# wrong value: mlp.gate.weight: this rank holds
# [answer 1]
plan = {
    "norm": SequenceParallel(),
    "mlp": PrepareModuleInput(
        input_layouts=Shard(1), desired_input_layouts=Replicate()
    ),
    "mlp.up": ColwiseParallel(),
    "mlp.down": RowwiseParallel(output_layouts=Shard(1)),
}
parallelize_module(block, mesh, plan)
