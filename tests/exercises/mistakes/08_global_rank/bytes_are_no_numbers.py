# exception: TypeError | place_among_unequal
# [answer 2]
nodes, node_rank = int(environ["NNODES"]), int(environ["NODE_RANK"])
store.set(str(node_rank), str(nprocs))
counts = [store.get(str(node)) for node in range(nodes)]
return sum(counts[:node_rank]) + local_rank, sum(counts)
