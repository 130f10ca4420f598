# wrong value: static_options(0, | a word too many
# [answer 1]
return [
    "torchrun",
    f"--nnodes={len(hosts)}",
    f"--node-rank={node_rank}",
    f"--nproc-per-node={ranks_per_node}",
    f"--master-addr={hosts[0]}",
    f"--master-port={port}",
]
