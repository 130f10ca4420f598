# right: another rank of all nodes saves, the device by get_node_local_rank, two barriers
# [answer 1]
dist.init_process_group(backend="gloo", init_method="env://")
return choose_device(dist.get_node_local_rank())
# [answer 2]
dist.barrier()
if dist.get_rank() == dist.get_world_size() - 1:
    with open(path, "wb") as file:
        torch.save({key: value.clone() for key, value in model.state_dict().items()}, file)
dist.barrier()
# [answer 3]
train(setup(), path)
dist.barrier()
dist.destroy_process_group()
