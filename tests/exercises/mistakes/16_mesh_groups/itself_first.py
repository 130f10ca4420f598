# wrong value: the group of rank | in another order
# [answer 2]
apart = math.prod(shape[axis + 1 :])
first = rank - coordinates(rank, shape)[axis] * apart
row = [first + place * apart for place in range(shape[axis])]
return [rank, *(other for other in row if other != rank)]
