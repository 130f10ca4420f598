# right: rank 0 reads, the weights are broadcast as tensors, the rest as an object
# [answer 2]
rest = [None]
if dist.get_rank() == 0:
    with open(path, "rb") as file:
        snapshot = torch.load(file, map_location=lambda storage, _: storage)
    model.load_state_dict(snapshot["model"])
    rest = [(snapshot["optimizer"], snapshot["epochs_run"])]
dist.broadcast_object_list(rest, src=0)
for tensor in model.state_dict().values():
    dist.broadcast(tensor, src=0)
optimizer.load_state_dict(rest[0][0])
return rest[0][1]
