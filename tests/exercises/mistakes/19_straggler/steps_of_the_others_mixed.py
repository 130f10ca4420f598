# wrong value: the others' typical data times are 0.1, 0.4 and 0.4 s | is 'data', expected 'compute'
# [answer 3]
def more(part):
    pooled = [
        step[part] for r, steps in enumerate(times) if r != slow for step in steps[1:]
    ]
    return typical(times[slow], part) - median(pooled)


return "data" if more("data") > more("compute") else "compute"
