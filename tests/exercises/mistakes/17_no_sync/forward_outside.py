# wrong way: numbers were all-reduced | forward pass was outside
# [answer 1]
loss = loss_of(model(inputs), targets) / count
with nullcontext() if number == count - 1 else model.no_sync():
    loss.backward()
