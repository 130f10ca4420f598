# exception: TypeError | node 1 has ranks 4 to 7
# [answer 1]
return environ["NODE_RANK"] * nprocs + local_rank, environ["NNODES"] * nprocs
