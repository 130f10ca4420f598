# exception: ValueError
# [answer 1]
recording = torch.is_grad_enabled()

def apply(pair):
    with torch.set_grad_enabled(recording):
        return pair[0](pair[1])

pairs = list(zip(replicas, chunks, strict=True))
with ThreadPoolExecutor(len(pairs)) as pool:
    return list(pool.map(apply, pairs))
# [answer 2]
chunks = inputs.chunk(self.parts)
self.replicas = [copy.deepcopy(self.module) for _ in range(self.parts)]
return torch.cat(parallel_apply(self.replicas, chunks))
