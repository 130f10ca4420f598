# wrong way: shards are gathered from the ranks | this rank's node has the ranks
# [answer 1]
sizes, names = (per_node, nodes), ("replica", "data")
mesh = init_device_mesh("cpu", sizes, mesh_dim_names=names)
for block in model.blocks:
    fully_shard(block, mesh=mesh)
fully_shard(model, mesh=mesh)
