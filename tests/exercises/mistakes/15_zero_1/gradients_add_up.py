# wrong value: after 3 steps of SGD
# [answer 2]
mean = torch.empty_like(self.shard)
dist.reduce_scatter_tensor(mean, whole / dist.get_world_size())
self.shard.grad = mean if self.shard.grad is None else self.shard.grad + mean
