# wrong value: the output for 10 images in 3 parts
# [answer 2]
size = max(1, len(inputs) // self.parts)
chunks = [inputs[i * size : (i + 1) * size] for i in range(self.parts)]
chunks = [chunk for chunk in chunks if len(chunk)]
self.replicas = [copy.deepcopy(self.module) for _ in chunks]
return torch.cat(parallel_apply(self.replicas, chunks))
