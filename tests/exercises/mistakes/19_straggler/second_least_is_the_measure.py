# wrong value: the slow rank, if ranks wait [0.61, 0.6, 0.81, 0.81] s: is none, not 1
# [answer 2]
waits = [typical(steps, "waiting") for steps in times]
first, second = sorted(waits)[:2]
slow = waits.index(first)
step = sum(typical(times[slow], p) for p in ("data", "compute", "waiting"))
return slow if second > first + step / 10 else None
