# wrong value: the loss of step 1 | on the last rank only
# [answer 2]
schedule.count = int((targets != PADDING).sum())
losses = []
if rank == last:
    schedule.step(target=targets, losses=losses)
else:
    schedule.step(*([inputs] if rank == 0 else []))
loss = torch.stack(losses).sum().detach() if losses else inputs.new_zeros(())
return loss
