# right: rank 0 loads, DDP sends the weights, the optimizer's state goes as an object
# [answer 1]
rest = [None]
if dist.get_rank() == 0 and path.exists():
    snapshot = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(snapshot["model"])
    rest = [(snapshot["optimizer"], snapshot["steps_run"])]
dist.broadcast_object_list(rest, src=0)
if rest[0] is None:
    return 0
optimizer.load_state_dict(rest[0][0])
return rest[0][1]
