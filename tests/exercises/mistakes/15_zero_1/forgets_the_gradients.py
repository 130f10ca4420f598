# wrong value: first.grad is gone after step
# [answer 3]
dist.all_gather_into_tensor(whole, self.shard.detach())
nn.utils.vector_to_parameters(whole.clone(), self.parameters)
for parameter in self.parameters:
    parameter.grad = None
