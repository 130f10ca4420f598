# wrong value: the gradient of 5 micro-batches | what comes after the reduction stays local
# [answer 1]
with nullcontext() if number == 0 else model.no_sync():
    (loss_of(model(inputs), targets) / count).backward()
