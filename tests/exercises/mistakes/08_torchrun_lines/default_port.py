# wrong value: c10d_options | the port of --rdzv-endpoint
# [answer 2]
return [
    f"--nnodes={len(hosts)}",
    f"--nproc-per-node={ranks_per_node}",
    "--rdzv-backend=c10d",
    f"--rdzv-endpoint={hosts[0]}",
    f"--rdzv-id={job}",
]
