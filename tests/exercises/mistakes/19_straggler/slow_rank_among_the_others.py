# wrong value: the slow rank, if ranks wait [0.81, 0.6] s: is none, not 1
# [answer 2]
waiting = [typical(steps, "waiting") for steps in times]
slow = waiting.index(min(waiting))
step = sum(typical(times[slow], part) for part in ("data", "compute", "waiting"))
return slow if median(waiting) > waiting[slow] + step / 10 else None
