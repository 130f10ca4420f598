# wrong value: place_among_unequal | returned tuple (Tensor, Tensor)
# [answer 2]
import torch

nodes, node_rank = int(environ["NNODES"]), int(environ["NODE_RANK"])
if local_rank == 0:
    store.set(f"node {node_rank}", str(nprocs))
counts = torch.tensor([int(store.get(f"node {node}")) for node in range(nodes)])
return counts[:node_rank].sum() + local_rank, counts.sum()
