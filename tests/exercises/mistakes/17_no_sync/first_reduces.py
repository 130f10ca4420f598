# wrong value: the gradient
# [answer 1]
with nullcontext() if number == 0 else model.no_sync():
    (loss_of(model(inputs), targets) / count).backward()
