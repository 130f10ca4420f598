# wrong value: the backward pass | does not require grad
# [answer 2]
chunks = inputs.chunk(self.parts)
self.replicas = [copy.deepcopy(self.module) for _ in chunks]
return torch.cat([output.detach() for output in parallel_apply(self.replicas, chunks)])
