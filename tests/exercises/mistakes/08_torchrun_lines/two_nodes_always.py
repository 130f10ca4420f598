# wrong value: static_options(0, | --nnodes=2, but there are 3 nodes
# [answer 1]
return [
    "--nnodes=2",
    f"--node-rank={node_rank}",
    f"--nproc-per-node={ranks_per_node}",
    f"--master-addr={hosts[0]}",
    f"--master-port={port}",
]
