# right, torch>=2.13: the schedule passes the number of targets to its loss function
# [answer 1]
rank, ranks = dist.get_rank(), dist.get_world_size()
stage = PipelineStage(layers, rank, ranks, torch.device("cpu"))
return Schedule1F1B(stage, micro_batches, share_of_loss, scale_grads=False)
# [answer 2]
losses = []
if rank == last:
    count = {"count": int((targets != PADDING).sum())}
    schedule.step(target=targets, losses=losses, loss_kwargs=count)
else:
    schedule.step(*([inputs] if rank == 0 else []), return_outputs=False)
loss = torch.stack(losses).sum().detach() if losses else inputs.new_zeros(())
dist.broadcast(loss, src=last)
return loss
