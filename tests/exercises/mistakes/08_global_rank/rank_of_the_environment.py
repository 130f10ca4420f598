# wrong value: place(0, 4, NNODES=2 NODE_RANK=0)
# [answer 1]
import os

nodes, node_rank = int(environ["NNODES"]), int(environ["NODE_RANK"])
rank = os.environ.get("RANK", node_rank * nprocs + local_rank)
return int(rank), nodes * nprocs
