# wrong value: the gradient of the last micro-batch alone
# [answer 1]
optimizer.zero_grad()
with nullcontext() if number == count - 1 else model.no_sync():
    loss_of(model(inputs), targets).backward()
