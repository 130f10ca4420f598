# wrong value: the module that your code calls | mat1 and mat2
# [answer 2]
chunks = inputs.chunk(self.parts, dim=1)
self.replicas = [copy.deepcopy(self.module) for _ in chunks]
return torch.cat(parallel_apply(self.replicas, chunks), dim=1)
