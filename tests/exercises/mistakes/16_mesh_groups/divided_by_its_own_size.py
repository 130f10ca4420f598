# wrong value: the coordinates of rank
# [answer 1]
places = []
for axis in range(len(shape)):
    places.append(rank // math.prod(shape[axis:]) % shape[axis])
return tuple(places)
