# wrong value: the loss of step 1 | the share of the last micro-batch
# [answer 2]
schedule.count = int((targets != PADDING).sum())
losses = []
if rank == last:
    schedule.step(target=targets, losses=losses)
else:
    schedule.step(*([inputs] if rank == 0 else []))
loss = losses[-1].detach() if losses else inputs.new_zeros(())
dist.broadcast(loss, src=last)
return loss
