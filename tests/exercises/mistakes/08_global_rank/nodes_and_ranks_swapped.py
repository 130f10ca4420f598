# wrong value: place(1, 4, NNODES=2 NODE_RANK=0)
# [answer 1]
nodes, node_rank = int(environ["NNODES"]), int(environ["NODE_RANK"])
return local_rank * nodes + node_rank, nodes * nprocs
