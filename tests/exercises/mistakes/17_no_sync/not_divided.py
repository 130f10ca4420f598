# wrong value: not divided by their number
# [answer 1]
with nullcontext() if number == count - 1 else model.no_sync():
    loss_of(model(inputs), targets).backward()
