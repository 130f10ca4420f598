# wrong value: the loss of step 1 | divided by the 3 ranks, one of which has a loss; got 0.7
# [answer 2]
schedule.count = int((targets != PADDING).sum())
losses = []
if rank == last:
    schedule.step(target=targets, losses=losses)
else:
    schedule.step(*([inputs] if rank == 0 else []))
loss = torch.stack(losses).sum().detach() if losses else inputs.new_zeros(())
dist.all_reduce(loss)
return loss / (last + 1)
