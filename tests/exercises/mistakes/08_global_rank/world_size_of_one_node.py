# wrong value: place(0, 4, NNODES=2 NODE_RANK=0) | expected 8
# [answer 1]
return int(environ["NODE_RANK"]) * nprocs + local_rank, nprocs
