# wrong value: images in no share
# [answer 1]
length = len(dataset) // world_size
return Subset(dataset, range(rank * length, (rank + 1) * length))
