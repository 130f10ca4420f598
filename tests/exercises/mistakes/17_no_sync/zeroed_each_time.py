# wrong value: the gradient of 5 micro-batches | the others were zeroed
optimizer.zero_grad()
with nullcontext() if number == count - 1 else model.no_sync():
    (loss_of(model(inputs), targets) / count).backward()
