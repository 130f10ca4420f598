# wrong way: the MLP computes on [[8, 3, 6]], expected [2, 12, 6]
# [answer 1]
plan = {
    "norm": SequenceParallel(sequence_dim=0),
    "mlp": PrepareModuleInput(
        input_layouts=Shard(0), desired_input_layouts=Replicate()
    ),
    "mlp.gate": ColwiseParallel(),
    "mlp.up": ColwiseParallel(),
    "mlp.down": RowwiseParallel(output_layouts=Shard(0)),
}
parallelize_module(block, mesh, plan)
