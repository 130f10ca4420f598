# wrong value: the coordinates of rank
# [answer 1]
places = []
for size in reversed(shape):
    rank, place = divmod(rank, size)
    places.append(place)
return tuple(places)
