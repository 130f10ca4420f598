# wrong value: no backward has reduced
# [answer 1]
with nullcontext() if number == count else model.no_sync():
    (loss_of(model(inputs), targets) / count).backward()
