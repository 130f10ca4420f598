# wrong value: requires_grad of the outputs | True
# [answer 1]
def apply(replica, chunk):
    with torch.no_grad():
        return replica(chunk)

with ThreadPoolExecutor(len(chunks)) as pool:
    return list(pool.map(apply, replicas, chunks))
