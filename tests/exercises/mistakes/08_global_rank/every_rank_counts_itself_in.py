# wrong value: place_among_unequal | where nodes start
# [answer 2]
nodes, node_rank = int(environ["NNODES"]), int(environ["NODE_RANK"])
store.add(f"node {node_rank}", nprocs)
counts = [store.add(f"node {node}", 0) for node in range(nodes)]
return sum(counts[:node_rank]) + local_rank, sum(counts)
