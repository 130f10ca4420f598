# wrong value: where do the agents connect? With c10d, --rdzv-endpoint says it, not --master-addr
# [answer 2]
return [
    f"--nnodes={len(hosts)}",
    f"--nproc-per-node={ranks_per_node}",
    "--rdzv-backend=c10d",
    f"--master-addr={hosts[0]}",
    f"--master-port={port}",
    f"--rdzv-id={job}",
]
