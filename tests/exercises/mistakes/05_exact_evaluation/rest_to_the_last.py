# wrong way: its share is at most 6
# [answer 1]
length = len(dataset) // world_size
end = len(dataset) if rank == world_size - 1 else (rank + 1) * length
return Subset(dataset, range(rank * length, end))
