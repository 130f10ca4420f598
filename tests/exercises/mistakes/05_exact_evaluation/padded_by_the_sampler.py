# wrong value: images in more than one share
# [answer 1]
from torch.utils.data import DistributedSampler
return Subset(dataset, list(DistributedSampler(dataset, shuffle=False)))
