# right: multi_get, and a slice of what comes before
# [answer 2]
node_rank = int(environ["NODE_RANK"])
keys = [f"nprocs/{node}" for node in range(int(environ["NNODES"]))]
store.set(keys[node_rank], f"{nprocs}")
counts = []
for key in keys:
    counts.append(int(store.get(key).decode("ascii")))
first = 0
for count in counts[:node_rank]:
    first += count
return (first + local_rank, sum(counts))
