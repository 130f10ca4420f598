# wrong value: requires_grad of the outputs | False
# [answer 1]
with ThreadPoolExecutor(len(chunks)) as pool:
    return list(pool.map(lambda replica, chunk: replica(chunk), replicas, chunks))
