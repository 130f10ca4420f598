# wrong way: never waited for the Work of reduce_scatter | keep the Work
# [answer 2]
self.shard.grad = torch.zeros_like(self.shard)
dist.reduce_scatter_tensor(
    self.shard.grad, whole / dist.get_world_size(), async_op=True
)
