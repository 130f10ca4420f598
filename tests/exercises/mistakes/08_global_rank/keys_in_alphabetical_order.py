# wrong value: local rank 0 of node 3, where nodes start [1, 1, 10 | expected 12
# [answer 2]
node, nodes = int(environ["NODE_RANK"]), int(environ["NNODES"])
store.set(f"node {node}", str(nprocs))
counts = [int(store.get(key)) for key in sorted(f"node {n}" for n in range(nodes))]
return sum(counts[:node]) + local_rank, sum(counts)
