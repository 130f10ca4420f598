# wrong value: c10d_options | --nproc-per-node
# [answer 2]
return [
    f"--nnodes={len(hosts)}",
    f"--nproc-per-node={ranks_per_node * len(hosts)}",
    "--rdzv-backend=c10d",
    f"--rdzv-endpoint={hosts[0]}:{port}",
    f"--rdzv-id={job}",
]
