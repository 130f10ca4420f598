# wrong value: the typical one of | repeats
# [answer 1]
kept = sorted(repeats)[:-1]
return statistics.median(kept)
