# wrong value: typical takes the fastest repeat
# [answer 1]
return min(repeats[1:])
