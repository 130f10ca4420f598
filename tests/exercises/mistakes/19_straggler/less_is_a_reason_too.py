# wrong value: the reason of rank 0, if ranks load for (0.1, 0.9, 0.9)
# [answer 3]
def difference(part):
    others = [typical(s, part) for rank, s in enumerate(times) if rank != slow]
    return abs(typical(times[slow], part) - median(others))


return max(("data", "compute"), key=difference)
