# right, torch>=2.9: narrow, AVG in the reduce-scatter, vector_to_parameters on the way back
# [answer 1]
n = self.numel
self.shard = nn.Parameter(whole.narrow(0, n * dist.get_rank(), n).detach().clone())
# [answer 2]
mean = whole.new_empty(self.numel)
dist.reduce_scatter_tensor(mean, whole, op=dist.ReduceOp.AVG)
self.shard.grad = mean
# [answer 3]
everything = torch.empty(self.numel * dist.get_world_size(), dtype=whole.dtype)
dist.all_gather_into_tensor(everything, self.shard.data)
nn.utils.vector_to_parameters(everything, self.parameters)
