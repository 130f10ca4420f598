# wrong value: the time of one message
# [answer 1]
return alpha + beta * size
