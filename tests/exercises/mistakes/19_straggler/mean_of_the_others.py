# wrong value: the reason of rank 0 | is 'compute', expected 'data'
# [answer 3]
others = times[:slow] + times[slow + 1 :]


def more(part):
    of_others = sum(typical(steps, part) for steps in others) / len(others)
    return typical(times[slow], part) - of_others


return "data" if more("data") > more("compute") else "compute"
