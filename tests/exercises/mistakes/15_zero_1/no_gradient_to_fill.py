# exception: nonetype | a tensor is put there: make one
# [answer 2]
dist.reduce_scatter_tensor(self.shard.grad, whole / dist.get_world_size())
