# wrong value: c10d_options | --nnodes=1:3
# [answer 2]
return [
    f"--nnodes=1:{len(hosts)}",
    f"--nproc-per-node={ranks_per_node}",
    "--rdzv-backend=c10d",
    f"--rdzv-endpoint={hosts[0]}:{port}",
    f"--rdzv-id={job}",
]
