# hang: waits at line | store.get
# [answer 2]
nodes, node_rank = int(environ["NNODES"]), int(environ["NODE_RANK"])
store.set(f"{node_rank}.{local_rank}", str(nprocs))
counts = [int(store.get(f"{node}.{local_rank}")) for node in range(nodes)]
return sum(counts[:node_rank]) + local_rank, sum(counts)
