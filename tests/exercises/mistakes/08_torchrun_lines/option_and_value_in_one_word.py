# wrong value: '--nnodes 3' is one word
# [answer 1]
return [
    f"--nnodes {len(hosts)}",
    f"--node-rank {node_rank}",
    f"--nproc-per-node {ranks_per_node}",
    f"--master-addr {hosts[0]}",
    f"--master-port {port}",
]
