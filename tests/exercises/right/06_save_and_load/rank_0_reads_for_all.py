# right: rank 0 reads the file and broadcasts what is in it
# [answer 2]
found = [None]
if dist.get_rank() == 0:
    try:
        found = [torch.load(path, map_location="cpu", weights_only=True)]
    except Exception as error:
        found = [str(error)]
dist.broadcast_object_list(found, src=0)
if isinstance(found[0], str):
    raise RuntimeError(found[0])
model.load_state_dict(found[0]["model"])
optimizer.load_state_dict(found[0]["optimizer"])
return found[0]["epochs_run"]
