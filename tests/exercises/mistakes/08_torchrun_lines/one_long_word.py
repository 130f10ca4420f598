# wrong value: c10d_options
# [answer 2]
return [
    f"--nnodes={len(hosts)} --nproc-per-node={ranks_per_node} "
    f"--rdzv-backend=c10d --rdzv-endpoint={hosts[0]}:{port} --rdzv-id={job}"
]
