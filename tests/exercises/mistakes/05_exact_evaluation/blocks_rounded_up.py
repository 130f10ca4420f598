# wrong value: unequal shares | images
# [answer 1]
length = -(-len(dataset) // world_size)
first = rank * length
return Subset(dataset, range(min(first, len(dataset)), min(first + length, len(dataset))))
