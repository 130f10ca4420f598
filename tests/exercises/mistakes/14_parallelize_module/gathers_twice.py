# wrong way: forward called all_gather, all_gather
# [answer 1]
plan = {
    "norm": SequenceParallel(),
    "mlp.gate": ColwiseParallel(),
    "mlp.up": ColwiseParallel(),
    "mlp.down": RowwiseParallel(output_layouts=Shard(1)),
}
parallelize_module(block, mesh, plan)
