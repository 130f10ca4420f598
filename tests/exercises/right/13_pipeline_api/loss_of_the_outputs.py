# right: the loss from the outputs of the last rank, sent as an object
# [answer 2]
schedule.count = int((targets != PADDING).sum())
given = (inputs,) if rank == 0 else ()
outputs = schedule.step(*given, target=targets)
told = [None]
if rank == last:
    told = [share_of_loss(outputs, targets, schedule.count).detach()]
dist.broadcast_object_list(told, src=last)
return told[0]
