# wrong value: the gradient of 3 micro-batches | no backward has reduced
# [answer 1]
with nullcontext() if number == 4 else model.no_sync():
    (loss_of(model(inputs), targets) / count).backward()
