# wrong value: the repeats that typical was given, afterwards
# [answer 1]
first = repeats[0]
rest = repeats[1:]
repeats.sort()
return statistics.median(rest)
