# right: sorts; a loop that remembers; compares the two sides
# [answer 1]
seconds = sorted(step[part] for number, step in enumerate(steps) if number > 0)
middle = len(seconds) // 2
if len(seconds) % 2:
    return seconds[middle]
return (seconds[middle - 1] + seconds[middle]) / 2
# [answer 2]
typically = {rank: typical(steps, "waiting") for rank, steps in enumerate(times)}
slow = min(typically, key=lambda rank: typically[rank])
own = typically.pop(slow)
step = own + typical(times[slow], "data") + typical(times[slow], "compute")
if median(typically.values()) - own > 0.1 * step:
    return slow
return None
# [answer 3]
others = [steps for rank, steps in enumerate(times) if rank != slow]
data = median(typical(steps, "data") for steps in others)
compute = median(typical(steps, "compute") for steps in others)
by_data = typical(times[slow], "data") - data
return "data" if by_data > typical(times[slow], "compute") - compute else "compute"
