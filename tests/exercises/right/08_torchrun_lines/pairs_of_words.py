# right: pairs of words, made flat
# [answer 1]
pairs = [
    ("--nnodes", len(hosts)),
    ("--nproc_per_node", ranks_per_node),
    ("--node_rank", node_rank),
    ("--master_port", port),
    ("--master_addr", hosts[0]),
]
return [str(word) for pair in pairs for word in pair]
# [answer 2]
pairs = {"nnodes": len(hosts), "nproc-per-node": ranks_per_node, "rdzv-id": job}
pairs["rdzv-backend"] = "c10d"
pairs["rdzv-endpoint"] = ":".join((hosts[0], str(port)))
words: list[str] = []
for name, value in pairs.items():
    words += [f"--{name}", f"{value}"]
return words
