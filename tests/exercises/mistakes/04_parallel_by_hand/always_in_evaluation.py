# wrong value: the output of a module in training mode
# [answer 2]
parts = inputs.chunk(self.parts)
self.replicas = [copy.deepcopy(self.module).eval() for _ in parts]
return torch.cat(parallel_apply(self.replicas, list(parts)))
