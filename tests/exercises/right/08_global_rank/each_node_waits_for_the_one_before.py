# right: each node waits for the number of all nodes before it
# [answer 1]
return int(environ["NODE_RANK"]) * nprocs + local_rank, int(environ["NNODES"]) * nprocs
# [answer 2]
node, nodes = int(environ["NODE_RANK"]), int(environ["NNODES"])
before = int(store.get(f"up to node {node - 1}")) if node else 0
store.set(f"up to node {node}", str(before + nprocs))
return before + local_rank, int(store.get(f"up to node {nodes - 1}"))
# [answer 3]
rank, world_size = place_among_unequal(local_rank, nprocs, environ, store)
dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
return local_rank
