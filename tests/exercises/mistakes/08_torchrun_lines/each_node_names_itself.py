# wrong value: static_options(1, | --master-addr
# [answer 1]
return [
    f"--nnodes={len(hosts)}",
    f"--node-rank={node_rank}",
    f"--nproc-per-node={ranks_per_node}",
    f"--master-addr={hosts[node_rank]}",
    f"--master-port={port}",
]
