# wrong value: the Subset has an object of type Images as its second argument
# [answer 1]
return Subset(range(rank, len(dataset), world_size), dataset)
