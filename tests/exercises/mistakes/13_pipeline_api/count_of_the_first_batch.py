# wrong value: the loss of step 2
# [answer 2]
if not hasattr(schedule, "count"):
    schedule.count = int((targets != PADDING).sum())
losses = []
if rank == 0:
    schedule.step(inputs)
elif rank == last:
    schedule.step(target=targets, losses=losses)
else:
    schedule.step()
loss = torch.stack(losses).sum().detach() if losses else inputs.new_zeros(())
dist.broadcast(loss, src=last)
return loss
