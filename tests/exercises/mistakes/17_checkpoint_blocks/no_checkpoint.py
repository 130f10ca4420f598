# wrong way: the blocks were computed [1, 1, 1]
# [answer 2]
x = block(x)
