# wrong value: the group of rank
# [answer 2]
apart = 1 if axis == len(shape) - 1 else shape[-1]
first = rank - coordinates(rank, shape)[axis] * apart
return [first + place * apart for place in range(shape[axis])]
