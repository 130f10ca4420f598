# wrong value: static_options(0, | --master-port
# [answer 1]
return [
    f"--nnodes={len(hosts)}",
    f"--node-rank={node_rank}",
    f"--nproc-per-node={ranks_per_node}",
    f"--master-addr={hosts[0]}",
]
