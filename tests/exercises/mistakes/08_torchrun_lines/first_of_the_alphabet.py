# wrong value: --master-addr | is 'node-c', expected 'node-y'
# [answer 1]
return [
    f"--nnodes={len(hosts)}",
    f"--nproc-per-node={ranks_per_node}",
    f"--node-rank={node_rank}",
    f"--master-addr={min(hosts)}",
    f"--master-port={port}",
]
