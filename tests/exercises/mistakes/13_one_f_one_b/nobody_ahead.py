# wrong value: slots of 2 ranks
# [answer 1]
ahead = 0
