# hang: `store.get` waits until that very key has been written | pass it to `store.set`
# [answer 2]
node = int(environ["NODE_RANK"])
store.set(f"n{node}", str(nprocs))
nodes = range(1, int(environ["NNODES"]) + 1)
counts = [int(store.get(f"n{i}")) for i in nodes]
return sum(counts[:node]) + local_rank, sum(counts)
