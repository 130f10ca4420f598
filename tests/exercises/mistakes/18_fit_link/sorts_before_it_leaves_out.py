# wrong value: leaves out another repeat than the first
# [answer 1]
return statistics.median(sorted(repeats)[1:])
