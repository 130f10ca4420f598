# wrong value: place_among_unequal | where nodes start
# [answer 2]
nodes, node_rank = int(environ["NNODES"]), int(environ["NODE_RANK"])
store.set("nprocs", str(nprocs))
counts = [int(store.get("nprocs")) for _ in range(nodes)]
return sum(counts[:node_rank]) + local_rank, sum(counts)
