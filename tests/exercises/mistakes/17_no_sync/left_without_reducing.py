# wrong value: after a step of 5 micro-batches, ddp no longer reduces
# [answer 1]
if number == 0:
    model.require_backward_grad_sync = False
if number == count - 1:
    model.require_backward_grad_sync = True
(loss_of(model(inputs), targets) / count).backward()
model.require_backward_grad_sync = False
