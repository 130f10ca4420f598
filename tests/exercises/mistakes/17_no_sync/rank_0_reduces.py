# hang: all_reduce | only some ranks reach
# [answer 1]
last = number == count - 1 and torch.distributed.get_rank() == 0
with nullcontext() if last else model.no_sync():
    (loss_of(model(inputs), targets) / count).backward()
