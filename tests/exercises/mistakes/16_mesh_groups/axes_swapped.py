# wrong value: along axis 0 of (2, 3) | the group along axis 1
# [answer 2]
axis = len(shape) - 1 - axis
apart = math.prod(shape[axis + 1 :])
first = rank - coordinates(rank, shape)[axis] * apart
return [first + place * apart for place in range(shape[axis])]
