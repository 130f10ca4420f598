# right: the last micro-batch is a branch of its own
# [answer 1]
if number < count - 1:
    with model.no_sync():
        (loss_of(model(inputs), targets) / count).backward()
else:
    (loss_of(model(inputs), targets) / count).backward()
