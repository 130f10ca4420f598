# wrong value: the loss of step 1 | different numbers of targets
# [answer 1]
rank, ranks = dist.get_rank(), dist.get_world_size()
stage = PipelineStage(layers, rank, ranks, torch.device("cpu"))
def mean(scores, targets):
    return F.cross_entropy(scores, targets, ignore_index=PADDING)
return Schedule1F1B(stage, n_microbatches=micro_batches, loss_fn=mean)
# [answer 2]
losses = []
if rank == last:
    schedule.step(target=targets, losses=losses)
else:
    schedule.step(*([inputs] if rank == 0 else []))
loss = torch.stack(losses).mean().detach() if losses else inputs.new_zeros(())
dist.broadcast(loss, src=last)
return loss
