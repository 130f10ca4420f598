# right: submit and result; the shares are summed first, then added; even parts
# [answer 1]
enabled = torch.is_grad_enabled()
work = torch.set_grad_enabled(enabled)(lambda replica, chunk: replica(chunk))
with ThreadPoolExecutor(max_workers=len(replicas)) as pool:
    futures = [pool.submit(work, r, c) for r, c in zip(replicas, chunks, strict=True)]
    return [future.result() for future in futures]
# [answer 2]
chunks = inputs.tensor_split(min(self.parts, len(inputs)))
self.replicas = [copy.deepcopy(self.module) for _ in chunks]
return torch.vstack(parallel_apply(self.replicas, chunks))
# [answer 3]
everywhere = zip(*(replica.parameters() for replica in self.replicas), strict=True)
for parameter, copies in zip(self.module.parameters(), everywhere, strict=True):
    shares = [c.grad for c in copies if c.grad is not None]
    if shares:
        total = torch.stack(shares).sum(0)
        parameter.grad = total if parameter.grad is None else parameter.grad + total
