# wrong value: parallel_apply | returned Tensor, expected list
# [answer 1]
recording = torch.is_grad_enabled()

def apply(replica, chunk):
    with torch.set_grad_enabled(recording):
        return replica(chunk)

with ThreadPoolExecutor(len(chunks)) as pool:
    return torch.cat(list(pool.map(apply, replicas, chunks)))
