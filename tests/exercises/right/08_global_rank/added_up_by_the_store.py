# right: a counter of the store, a wait for all, the positional order of arguments
# [answer 1]
first = nprocs * int(environ["NODE_RANK"])
return first + local_rank, nprocs * int(environ["NNODES"])
# [answer 2]
import json

nodes = int(environ["NNODES"])
key = "started by " + environ["NODE_RANK"]
if local_rank == nprocs - 1:
    store.set(key, json.dumps({"nprocs": nprocs}))
store.wait([f"started by {node}" for node in range(nodes)])
counts = [json.loads(store.get(f"started by {n}"))["nprocs"] for n in range(nodes)]
return local_rank + sum(counts[: int(environ["NODE_RANK"])]), sum(counts)
# [answer 3]
numbers = place_among_unequal(local_rank, nprocs, environ, store)
mine = dist.PrefixStore("group", store)
dist.init_process_group("gloo", rank=numbers[0], world_size=numbers[1], store=mine)
return local_rank
