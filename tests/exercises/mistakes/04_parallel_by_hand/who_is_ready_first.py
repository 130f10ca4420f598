# wrong value: the output of part 0
# [answer 1]
from concurrent.futures import as_completed

with ThreadPoolExecutor(len(chunks)) as pool:
    futures = [pool.submit(r, c) for r, c in zip(replicas, chunks, strict=True)]
    return [future.result() for future in as_completed(futures)]
