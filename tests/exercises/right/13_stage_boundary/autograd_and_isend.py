# right: isend with wait, torch.autograd.backward, the leaf made before receiving
# [answer 1]
if rank == 0:
    x = inputs
else:
    x = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        dist.irecv(x, rank - 1).wait()
y = stage(x)
if rank + 1 < world_size:
    dist.isend(y.detach(), rank + 1).wait()
# [answer 2]
gradient = None
if loss is None:
    gradient = torch.zeros(y.shape, dtype=y.dtype)
    dist.irecv(gradient, rank + 1).wait()
torch.autograd.backward(y if loss is None else loss, gradient)
if rank != 0:
    dist.isend(x.grad.clone(), rank - 1).wait()
