# hang: rank 1 | without a matching call
# [answer 2]
schedule.count = int((targets != PADDING).sum())
losses = []
if rank == 0:
    schedule.step(inputs)
elif rank == last:
    schedule.step(target=targets, losses=losses)
loss = torch.stack(losses).sum().detach() if losses else inputs.new_zeros(())
dist.broadcast(loss, src=last)
return loss
