# wrong value: static_options(1, | --node-rank | is 0, expected 1
# [answer 1]
return [
    f"--nnodes={len(hosts)}",
    f"--nproc-per-node={ranks_per_node}",
    f"--master-addr={hosts[0]}",
    f"--master-port={port}",
]
