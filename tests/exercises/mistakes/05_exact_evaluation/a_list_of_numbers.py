# wrong value: my_share returned a list, expected a Subset
# [answer 1]
return list(range(rank, len(dataset), world_size))
