# wrong value: are those of the smallest and the largest message alone
# [answer 2]
first, last = typical(seconds[0]), typical(seconds[-1])
beta = (last - first) / (sizes[-1] - sizes[0])
return first - beta * sizes[0], beta
