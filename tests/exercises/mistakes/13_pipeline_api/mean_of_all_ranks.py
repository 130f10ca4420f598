# wrong value: divided by the 3 ranks
# [answer 1]
    stage = PipelineStage(layers, dist.get_rank(), dist.get_world_size(), torch.device("cpu"))
    return Schedule1F1B(stage, micro_batches, share_of_loss, scale_grads=False)
# [answer 2]
    losses = []
    count = int((targets != PADDING).sum())
    if rank == 0: schedule.step(inputs)
    elif rank == last: schedule.step(target=targets, losses=losses, loss_kwargs={"count": count})
    else: schedule.step()
    loss = torch.stack(losses).sum().detach() if losses else inputs.new_zeros(())
    dist.all_reduce(loss, op=dist.ReduceOp.AVG)
    return loss
