# wrong value, torch>=2.10: got no gradient
# [answer 2]
schedule.count = int((targets != PADDING).sum())
losses = []
if rank == last:
    schedule.eval(target=targets, losses=losses)
else:
    schedule.eval(*([inputs] if rank == 0 else []))
loss = torch.stack(losses).sum().detach() if losses else inputs.new_zeros(())
dist.broadcast(loss, src=last)
return loss
