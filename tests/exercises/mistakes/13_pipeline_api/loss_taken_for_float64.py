# ranks disagree: broadcast(float64[], root 2) | the ranks pass different dtypes
# [answer 2]
losses = []
schedule.count = int((targets != PADDING).sum())
if rank == 0:
    schedule.step(inputs)
elif rank == last:
    schedule.step(target=targets, losses=losses)
else:
    schedule.step()
loss = torch.zeros((), dtype=torch.float64)
if rank == last:
    loss = torch.stack(losses).sum().detach()
dist.broadcast(loss, src=last)
return loss
