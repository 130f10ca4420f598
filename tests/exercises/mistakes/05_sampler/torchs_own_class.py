# wrong way: DistributedSampler of torch does the work
# [answer 3]
from torch.utils.data import DistributedSampler

sampler = DistributedSampler(range(size), world_size, rank, shuffle, seed)
sampler.set_epoch(epoch)
return list(sampler)
