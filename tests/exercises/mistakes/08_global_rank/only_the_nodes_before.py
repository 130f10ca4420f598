# wrong value: place_among_unequal | where nodes start
# [answer 2]
nodes, node_rank = int(environ["NNODES"]), int(environ["NODE_RANK"])
if local_rank == 0:
    store.set(f"node {node_rank}", str(nprocs))
before = sum(int(store.get(f"node {node}")) for node in range(node_rank))
return before + local_rank, before + nprocs
