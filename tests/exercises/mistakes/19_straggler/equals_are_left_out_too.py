# wrong value: if ranks wait [0.1, 0.1, 0.35] s | is 0, expected none
# [answer 2]
waiting = [typical(steps, "waiting") for steps in times]
slow = waiting.index(min(waiting))
step = sum(typical(times[slow], part) for part in ("data", "compute", "waiting"))
others = [seconds for seconds in waiting if seconds != waiting[slow]]
if not others:
    return None
return slow if median(others) > waiting[slow] + step / 10 else None
