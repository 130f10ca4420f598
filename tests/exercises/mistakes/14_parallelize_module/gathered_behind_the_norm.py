# wrong way: backward called all_gather, all_reduce, all_reduce
# [answer 1]
from torch.distributed.tensor.parallel import PrepareModuleOutput

plan = {name: ColwiseParallel() for name in ("mlp.gate", "mlp.up")}
plan["mlp.down"] = RowwiseParallel(output_layouts=Shard(1))
plan["norm"] = SequenceParallel()
parallelize_module(block, mesh, plan)
gather = PrepareModuleOutput(output_layouts=Shard(1), desired_output_layouts=Replicate())
parallelize_module(block.norm, mesh, gather)
