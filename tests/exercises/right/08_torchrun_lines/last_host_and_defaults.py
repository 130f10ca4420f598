# right: any host can be where the agents of c10d meet; short options, and what is default
# [answer 1]
where = {"nnodes": len(hosts), "node-rank": node_rank, "nproc-per-node": ranks_per_node}
where |= {"master-addr": hosts[0], "master-port": port, "rdzv-backend": "static"}
return [f"--{name}={value}" for name, value in where.items()]
# [answer 2]
return [
    f"--nnodes={len(hosts)}",
    f"--nproc-per-node={ranks_per_node}",
    "--max-restarts=0",
    "--rdzv-backend=c10d",
    f"--rdzv-endpoint={hosts[-1]}:{port}",
    f"--rdzv-id={job}",
]
