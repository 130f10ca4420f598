# right: received into the data of a leaf, messages as a batch
# [answer 1]
x = inputs
if rank:
    x = torch.zeros(*shape, dtype=torch.double, requires_grad=True)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, x.data, rank - 1)]):
        work.wait()
y = stage(x)
if rank != world_size - 1:
    message = y.detach().clone()
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, message, rank + 1)]):
        work.wait()
return x, y
# [answer 2]
if rank == world_size - 1:
    torch.autograd.backward(loss)
else:
    dist.recv(gradient := torch.empty(y.shape, dtype=y.dtype), rank + 1)
    (y * gradient).sum().backward()
if rank != 0:
    dist.isend(x.grad, rank - 1).wait()
