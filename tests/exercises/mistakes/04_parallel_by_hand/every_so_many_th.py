# wrong value: the output for 12 images | another order
# [answer 2]
chunks = [inputs[i :: self.parts] for i in range(min(self.parts, len(inputs)))]
self.replicas = [copy.deepcopy(self.module) for _ in chunks]
return torch.cat(parallel_apply(self.replicas, chunks))
