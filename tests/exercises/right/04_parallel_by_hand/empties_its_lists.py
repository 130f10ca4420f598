# right: takes from its lists what it hands to a thread; nobody needs them afterwards
# [answer 1]
recording = torch.is_grad_enabled()


def run(replica, chunk):
    with torch.set_grad_enabled(recording):
        return replica(chunk)


with ThreadPoolExecutor(len(replicas)) as pool:
    futures = []
    while chunks:
        futures.append(pool.submit(run, replicas.pop(0), chunks.pop(0)))
return [future.result() for future in futures]
# [answer 2]
parts = list(inputs.chunk(self.parts))
self.replicas = [copy.deepcopy(self.module) for _ in parts]
return torch.cat(parallel_apply(list(self.replicas), parts))
