# wrong value: the gradient
# [answer 1]
with model.no_sync() if number == count - 1 else nullcontext():
    (loss_of(model(inputs), targets) / count).backward()
