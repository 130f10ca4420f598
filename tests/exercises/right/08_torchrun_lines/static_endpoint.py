# right: static with --rdzv-endpoint, which torchrun takes for the address and the port
# [answer 1]
return [
    f"--nnodes={len(hosts)}:{len(hosts)}",
    f"--node-rank={node_rank}",
    f"--nproc-per-node={ranks_per_node}",
    "--rdzv-backend=static",
    f"--rdzv-endpoint={hosts[0]}:{port}",
]
# [answer 2]
backend = ("--rdzv_backend", "c10d")
meeting = ("--rdzv_endpoint", f"{hosts[0]}:{port}", "--rdzv_id", job)
size = ("--nnodes", str(len(hosts)), "--nproc_per_node", str(ranks_per_node))
return (*size, *backend, *meeting)
