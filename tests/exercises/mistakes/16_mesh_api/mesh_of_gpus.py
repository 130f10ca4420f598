# exception: init_device_mesh("cuda" | checks run on the cpu
# [answer 1]
names = ("nodes", "ranks")
mesh = init_device_mesh("cuda", (nodes, per_node), mesh_dim_names=names)
for block in model.blocks:
    fully_shard(block, mesh=mesh)
fully_shard(model, mesh=mesh)
