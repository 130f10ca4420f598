# wrong value: the coordinates of rank
# [answer 1]
coordinate = []
for axis in range(len(shape)):
    coordinate.append(rank // math.prod(shape[axis:]) % shape[axis])
return tuple(coordinate)
