# wrong value: the loss of step 1
# [answer 1]
sizes, names = (nodes, per_node), ("replica", "data")
mesh = init_device_mesh("cpu", sizes, mesh_dim_names=names)
for block in model.blocks:
    fully_shard(block, mesh=mesh["data"])
fully_shard(model, mesh=mesh["data"])
