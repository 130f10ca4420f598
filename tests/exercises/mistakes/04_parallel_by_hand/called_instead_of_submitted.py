# exception: 'Tensor' object is not callable | pass the function and its arguments
# [answer 1]
with ThreadPoolExecutor(len(chunks)) as pool:
    futures = [
        pool.submit(replica(chunk))
        for replica, chunk in zip(replicas, chunks, strict=True)
    ]
return [future.result() for future in futures]
