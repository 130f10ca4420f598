# wrong value: the coordinates of rank
# [answer 1]
coordinate = []
for size in reversed(shape):
    rank, place = divmod(rank, size)
    coordinate.append(place)
return tuple(coordinate)
