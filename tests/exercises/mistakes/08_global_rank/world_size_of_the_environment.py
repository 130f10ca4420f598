# wrong value: place(0, 4, NNODES=2 NODE_RANK=0) | expected 8
# [answer 1]
nodes, node_rank = int(environ["NNODES"]), int(environ["NODE_RANK"])
return node_rank * nprocs + local_rank, int(environ.get("WORLD_SIZE", nodes * nprocs))
