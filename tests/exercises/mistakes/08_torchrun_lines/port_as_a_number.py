# wrong value: static_options(0, | list of words
# [answer 1]
return [
    "--nnodes", str(len(hosts)),
    "--node-rank", str(node_rank),
    "--nproc-per-node", str(ranks_per_node),
    "--master-addr", hosts[0],
    "--master-port", port,
]
