# wrong way: never ran at the same time | 12 images should make 4 parts, not 3
# [answer 2]
chunks = inputs.split(self.parts)
self.replicas = [copy.deepcopy(self.module) for _ in chunks]
for replica in self.replicas:
    replica.zero_grad()
return torch.cat(parallel_apply(self.replicas, list(chunks)))
