# wrong value: the gradient of 1 micro-batch | no backward has reduced
# [answer 1]
last = number > 0 and number == count - 1
with nullcontext() if last else model.no_sync():
    (loss_of(model(inputs), targets) / count).backward()
