# wrong value: c10d_options | localhost
# [answer 2]
return [
    f"--nnodes={len(hosts)}",
    f"--nproc-per-node={ranks_per_node}",
    "--rdzv-backend=c10d",
    f"--rdzv-endpoint=localhost:{port}",
    f"--rdzv-id={job}",
]
