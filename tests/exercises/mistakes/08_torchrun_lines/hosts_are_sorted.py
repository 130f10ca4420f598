# wrong value: the hosts that were given, afterwards
# [answer 1]
hosts.sort()
return [
    f"--nnodes={len(hosts)}",
    f"--nproc-per-node={ranks_per_node}",
    f"--node-rank={node_rank}",
    f"--master-addr={hosts[0]}",
    f"--master-port={port}",
]
