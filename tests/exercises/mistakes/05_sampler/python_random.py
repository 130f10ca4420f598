# wrong value: the order of 13 in epoch 0
# [answer 1]
import random
order = list(range(size))
random.Random(seed + epoch).shuffle(order)
return order
