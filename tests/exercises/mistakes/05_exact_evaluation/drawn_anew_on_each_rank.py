# wrong value: images in
# [answer 1]
from torch.utils.data import random_split

sizes = [len(part) for part in torch.arange(len(dataset)).tensor_split(world_size)]
return random_split(dataset, sizes)[rank]
