# right: an executor without `with`, a list of shares by parameter
# [answer 1]
from functools import partial

def apply(recording, replica, chunk):
    with torch.autograd.set_grad_enabled(recording):
        return replica(chunk)

pool = ThreadPoolExecutor(max_workers=len(chunks) + 1)
try:
    work = partial(apply, torch.is_grad_enabled())
    return [*pool.map(work, replicas, chunks)]
finally:
    pool.shutdown()
# [answer 2]
used = min(self.parts, inputs.size(0))
chunks = torch.tensor_split(inputs, used)
self.replicas.clear()
self.replicas.extend(copy.deepcopy(self.module) for _ in range(used))
return torch.cat(tuple(parallel_apply(self.replicas, list(chunks))))
# [answer 3]
with torch.no_grad():
    for replica in self.replicas:
        for mine, theirs in zip(self.module.parameters(), replica.parameters()):
            if theirs.grad is not None and mine.grad is None:
                mine.grad = theirs.grad.clone()
            elif theirs.grad is not None:
                mine.grad.add_(theirs.grad)
