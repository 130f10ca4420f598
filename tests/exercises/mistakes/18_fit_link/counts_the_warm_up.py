# wrong value: typical counts the first repeat
# [answer 1]
return statistics.median(repeats)
