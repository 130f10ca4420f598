# wrong value: the parameters after one step of SGD | two steps
with nullcontext() if number == count - 1 else model.no_sync():
    (loss_of(model(inputs), targets) / count).backward()
if number == count - 1:
    optimizer.step()
