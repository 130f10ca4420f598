# wrong way: never ran at the same time
# [answer 1]
recording = torch.is_grad_enabled()

def apply(replica, chunk):
    with torch.set_grad_enabled(recording):
        return replica(chunk)

with ThreadPoolExecutor(1) as pool:
    return list(pool.map(apply, replicas, chunks))
