# wrong value: place_among_unequal | where nodes start
# [answer 2]
import time
node, nodes = int(environ["NODE_RANK"]), int(environ["NNODES"])
store.set(f"node {node}", str(nprocs))
time.sleep(1)
keys = [f"node {n}" for n in range(nodes)]
counts = [int(store.get(key)) if store.check([key]) else 0 for key in keys]
return sum(counts[:node]) + local_rank, sum(counts)
