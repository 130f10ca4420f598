# right: option and value as two words, the spelling with underscores
# [answer 1]
words = f"--nnodes {len(hosts)} --node_rank {node_rank} --nproc_per_node"
return [
    *words.split(),
    str(ranks_per_node),
    "--rdzv-backend",
    "static",
    *("--master_addr", hosts[0]),
    *("--master_port", str(port)),
]
# [answer 2]
return f"""
    --nnodes={len(hosts)}:{len(hosts)} --nproc-per-node {ranks_per_node}
    --rdzv-backend c10d --rdzv-endpoint {hosts[0]}:{port} --rdzv-id {job}
""".split()
