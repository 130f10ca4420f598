# exception: target
# [answer 2]
schedule.count = int((targets != PADDING).sum())
losses = []
if rank == 0:
    schedule.step(inputs, target=targets, losses=losses)
else:
    schedule.step()
loss = torch.stack(losses).sum().detach() if losses else inputs.new_zeros(())
dist.broadcast(loss, src=last)
return loss
