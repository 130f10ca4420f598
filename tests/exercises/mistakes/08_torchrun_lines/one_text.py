# wrong value: static_options(0, | list of words
# [answer 1]
return (
    f"--nnodes={len(hosts)} --node-rank={node_rank} --nproc-per-node={ranks_per_node} "
    f"--master-addr={hosts[0]} --master-port={port}"
)
