# wrong way: sends or receives pickled objects
# [answer 1]
x = inputs
if rank:
    box = [None]
    dist.recv_object_list(box, rank - 1)
    x = box[0].requires_grad_()
y = stage(x)
if rank < world_size - 1:
    dist.send_object_list([y.detach()], rank + 1)
# [answer 2]
if rank < world_size - 1:
    box = [None]
    dist.recv_object_list(box, rank + 1)
    y.backward(box[0])
else:
    loss.backward()
if rank:
    dist.send_object_list([x.grad], rank - 1)
