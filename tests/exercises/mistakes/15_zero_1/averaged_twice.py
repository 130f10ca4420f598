# wrong value, torch>=2.9: after one step of SGD | divided by the world size once more
# [answer 2]
whole /= dist.get_world_size()
self.shard.grad = torch.empty_like(self.shard)
dist.reduce_scatter_tensor(self.shard.grad, whole, op=dist.ReduceOp.AVG)
