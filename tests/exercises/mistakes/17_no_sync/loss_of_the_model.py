# exception: loss_of got a DistributedDataParallel for the outputs, expected a tensor | line 37: (loss_of(model, targets) / count).backward()
with nullcontext() if number == count - 1 else model.no_sync():
    (loss_of(model, targets) / count).backward()
