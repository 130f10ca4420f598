# wrong value: coordinates of rank 1 on a grid (2, 3)
# [answer 1]
places = []
for size in shape:
    rank, place = divmod(rank, size)
    places.append(place)
return tuple(places)
