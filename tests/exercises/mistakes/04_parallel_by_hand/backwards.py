# wrong value: the output for 12 images | parts joined in the wrong order
# [answer 2]
chunks = inputs.chunk(self.parts)[::-1]
self.replicas = [copy.deepcopy(self.module) for _ in chunks]
return torch.cat(parallel_apply(self.replicas, chunks))
