# wrong value: where nodes start [1, 1, 10 | expected 21
# [answer 2]
node, nodes = int(environ["NODE_RANK"]), int(environ["NNODES"])
store.set(f"node {node}", str(nprocs))
counts = [store.get(f"node {n}")[0] - ord("0") for n in range(nodes)]
return sum(counts[:node]) + local_rank, sum(counts)
