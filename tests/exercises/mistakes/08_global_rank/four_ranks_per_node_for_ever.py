# wrong value: over all nodes, each rank
# [answer 1]
nodes, node_rank = int(environ["NNODES"]), int(environ["NODE_RANK"])
return node_rank * 4 + local_rank, nodes * 4
