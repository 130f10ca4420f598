# wrong way: forward called all_gather, all_gather
# [answer 1]
plan = {
    "norm": SequenceParallel(),
    "mlp": PrepareModuleInput(
        input_layouts=Shard(1), desired_input_layouts=Replicate()
    ),
    "mlp.gate": ColwiseParallel(output_layouts=Replicate()),
    "mlp.up": ColwiseParallel(output_layouts=Replicate()),
    "mlp.down": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
}
parallelize_module(block, mesh, plan)
