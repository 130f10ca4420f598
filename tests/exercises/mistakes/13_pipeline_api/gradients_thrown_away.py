# wrong value: the gradient of | step adds to .grad
# [answer 2]
for p in schedule._stage.submod.parameters():
    p.grad = None
schedule.count = int((targets != PADDING).sum())
losses = []
if rank == last:
    schedule.step(target=targets, losses=losses)
else:
    schedule.step(*([inputs] if rank == 0 else []))
loss = torch.stack(losses).sum().detach() if losses else inputs.new_zeros(())
dist.broadcast(loss, src=last)
return loss
