# wrong value: no backward has reduced
# [answer 1]
with model.no_sync():
    (loss_of(model(inputs), targets) / count).backward()
