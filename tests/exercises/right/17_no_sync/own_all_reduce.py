# right: all backward passes are local, and the mean is taken by hand
# [answer 1]
with model.no_sync():
    loss_of(model(inputs), targets).div(count).backward()
if number == count - 1:
    for parameter in model.parameters():
        torch.distributed.all_reduce(parameter.grad)
        parameter.grad /= torch.distributed.get_world_size()
