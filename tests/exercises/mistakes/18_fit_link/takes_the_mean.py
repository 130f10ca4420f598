# wrong value: typical takes the mean, which the slow repeat spoils
# [answer 1]
return statistics.mean(repeats[1:])
