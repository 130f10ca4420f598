# exception: breakpoint() | keyboard
breakpoint()
with nullcontext() if number == count - 1 else model.no_sync():
    (loss_of(model(inputs), targets) / count).backward()
