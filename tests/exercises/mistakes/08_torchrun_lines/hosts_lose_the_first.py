# wrong value: static_options(0, | the hosts that were given, afterwards
# [answer 1]
first = hosts.pop(0)
return [
    f"--nnodes={len(hosts) + 1}",
    f"--nproc-per-node={ranks_per_node}",
    f"--node-rank={node_rank}",
    f"--master-addr={first}",
    f"--master-port={port}",
]
