# wrong value: the host of --rdzv-endpoint=tcp://gpu | is 'tcp', which isn't one of the hosts
# [answer 2]
return [
    f"--nnodes={len(hosts)}",
    f"--nproc-per-node={ranks_per_node}",
    "--rdzv-backend=c10d",
    f"--rdzv-endpoint=tcp://{hosts[0]}:{port}",
    f"--rdzv-id={job}",
]
