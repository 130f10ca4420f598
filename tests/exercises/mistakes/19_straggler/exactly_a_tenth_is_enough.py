# wrong value: if ranks wait [1.0, 0.0] s | is 1, expected none
# [answer 2]
waiting = [typical(steps, "waiting") for steps in times]
slow = waiting.index(min(waiting))
step = sum(typical(times[slow], part) for part in ("data", "compute", "waiting"))
others = waiting[:slow] + waiting[slow + 1 :]
return slow if median(others) >= waiting[slow] + step / 10 else None
