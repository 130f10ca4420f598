# right: a cycle of the list, shares by islice
# [answer 1]
own = torch.Generator(device="cpu")
own = own.manual_seed(seed + epoch)
return [*map(int, torch.randperm(n=size, generator=own))]
# [answer 2]
from itertools import cycle, islice

length = len(indices) + -len(indices) % world_size
return list(islice(cycle(indices), length))
# [answer 3]
from itertools import islice

order = epoch_order(size, seed=seed, epoch=epoch, shuffle=shuffle)
return list(islice(pad(order, world_size), rank, None, world_size))
