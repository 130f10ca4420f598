# wrong value: typical takes the upper of the two in the middle
# [answer 1]
measured = sorted(repeats[1:])
return measured[len(measured) // 2]
