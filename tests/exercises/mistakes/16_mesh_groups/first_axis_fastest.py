# wrong value: coordinates of rank 1 on a grid (2, 3)
# [answer 1]
coordinate = []
for size in shape:
    rank, place = divmod(rank, size)
    coordinate.append(place)
return tuple(coordinate)
