# wrong value: static_options(0, | --node-rank | is 1, expected 0
# [answer 1]
return [
    f"--nnodes={len(hosts)}",
    f"--node-rank={node_rank + 1}",
    f"--nproc-per-node={ranks_per_node}",
    f"--master-addr={hosts[0]}",
    f"--master-port={port}",
]
