# wrong value: place_among_unequal | where nodes start
# [answer 2]
nodes, node_rank = int(environ["NNODES"]), int(environ["NODE_RANK"])
if local_rank == 0:
    store.set(f"node {node_rank}", str(nprocs))
counts = [int(store.get(f"node {node}")) for node in range(nodes)]
return node_rank * nprocs + local_rank, sum(counts)
