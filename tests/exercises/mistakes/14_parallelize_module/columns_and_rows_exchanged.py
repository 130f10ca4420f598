# wrong value: mlp.gate.weight: this rank holds
# [answer 1]
plan = {
    "norm": SequenceParallel(),
    "mlp": PrepareModuleInput(
        input_layouts=Shard(1), desired_input_layouts=Replicate()
    ),
    "mlp.gate": RowwiseParallel(),
    "mlp.up": RowwiseParallel(),
    "mlp.down": ColwiseParallel(),
}
parallelize_module(block, mesh, plan)
