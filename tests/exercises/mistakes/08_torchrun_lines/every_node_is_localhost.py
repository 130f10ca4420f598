# wrong value: --local-addr differs from node to node
# [answer 2]
return [
    f"--nnodes={len(hosts)}",
    f"--nproc-per-node={ranks_per_node}",
    "--rdzv-backend=c10d",
    f"--rdzv-endpoint={hosts[0]}:{port}",
    f"--rdzv-id={job}",
    "--local-addr=localhost",
]
