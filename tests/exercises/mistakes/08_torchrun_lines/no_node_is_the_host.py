# wrong value: is_host of --rdzv-conf differs from node to node
# [answer 2]
return [
    f"--nnodes={len(hosts)}",
    f"--nproc-per-node={ranks_per_node}",
    "--rdzv-backend=c10d",
    f"--rdzv-endpoint={hosts[0]}:{port}",
    f"--rdzv-id={job}",
    "--rdzv-conf=timeout=60,is_host=0",
]
