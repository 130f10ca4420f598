# wrong value: the model is left in evaluation mode
# [answer 1]
model.eval()
with nullcontext() if number == count - 1 else model.no_sync():
    (loss_of(model(inputs), targets) / count).backward()
