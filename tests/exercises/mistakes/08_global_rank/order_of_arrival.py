# wrong value: local rank 0 of node 0
# [answer 2]
rank = store.add("arrived", 1) - 1
if local_rank == 0:
    store.set(f"nprocs of node {environ['NODE_RANK']}", str(nprocs))
nodes = range(int(environ["NNODES"]))
return rank, sum(int(store.get(f"nprocs of node {node}")) for node in nodes)
