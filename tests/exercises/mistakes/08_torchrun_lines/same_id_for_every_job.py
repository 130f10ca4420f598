# wrong value: c10d_options | --rdzv-id
# [answer 2]
return [
    f"--nnodes={len(hosts)}",
    f"--nproc-per-node={ranks_per_node}",
    "--rdzv-backend=c10d",
    f"--rdzv-endpoint={hosts[0]}:{port}",
    "--rdzv-id=job",
]
