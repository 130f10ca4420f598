# wrong value: images in more than one share
# [answer 1]
length = len(dataset) // world_size
return Subset(dataset, range(rank * length, min((rank + 1) * length + 1, len(dataset))))
