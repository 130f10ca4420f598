# wrong value: the gradient
# [answer 1]
with nullcontext() if number == count - 1 else model.no_sync():
    (loss_of(model(inputs), targets) / count).backward()
if number == 0:
    optimizer.step()
