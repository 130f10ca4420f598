# wrong value: the epoch that all ranks resume from | ranks 0, 1 and 2: is 9, expected 10
# [answer 2]
all_epochs = [None] * dist.get_world_size()
dist.all_gather_object(all_epochs, [str(epoch) for epoch in own])
common = set.intersection(*map(set, all_epochs))
return int(max(common)) if common else None
