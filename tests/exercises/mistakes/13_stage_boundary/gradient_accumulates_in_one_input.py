# wrong value: after three micro-batches
# [answer 1]
x = inputs
if rank > 0:
    if not hasattr(stage, "room") or stage.room.shape != shape:
        stage.room = torch.empty(shape, dtype=torch.float64)
    x = stage.room.requires_grad_(False)
    dist.recv(x, src=rank - 1)
    x.requires_grad_()
y = stage(x)
if rank < world_size - 1:
    dist.send(y.detach(), dst=rank + 1)
