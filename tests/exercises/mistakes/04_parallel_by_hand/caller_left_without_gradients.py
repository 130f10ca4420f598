# wrong value: your code left gradients switched off
# [answer 1]
recording = torch.is_grad_enabled()
torch.set_grad_enabled(False)

def apply(replica, chunk):
    with torch.set_grad_enabled(recording):
        return replica(chunk)

with ThreadPoolExecutor(len(chunks)) as pool:
    return list(pool.map(apply, replicas, chunks))
