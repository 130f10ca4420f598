# wrong value: the group of rank 0
# [answer 2]
apart = math.prod(shape[axis + 1 :])
first = rank - coordinates(rank, shape)[axis] * apart
return [r for r in range(first, first + shape[axis] * apart, apart) if r != rank]
