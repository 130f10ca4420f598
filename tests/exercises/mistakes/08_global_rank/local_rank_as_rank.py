# wrong value: place(0, 4, NNODES=2 NODE_RANK=1) | is 0, expected 4
# [answer 1]
return local_rank, int(environ["NNODES"]) * nprocs
