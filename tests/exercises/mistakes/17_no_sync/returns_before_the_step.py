# wrong value: what they were before | no step
if number < count - 1:
    with model.no_sync():
        (loss_of(model(inputs), targets) / count).backward()
else:
    (loss_of(model(inputs), targets) / count).backward()
    return
