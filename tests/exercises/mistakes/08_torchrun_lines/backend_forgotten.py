# wrong value: c10d_options | --rdzv-backend
# [answer 2]
return [
    f"--nnodes={len(hosts)}",
    f"--nproc-per-node={ranks_per_node}",
    f"--rdzv-endpoint={hosts[0]}:{port}",
    f"--rdzv-id={job}",
]
