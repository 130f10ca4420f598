# wrong value: slow_rank changed the caller's times
# [answer 2]
waiting = [typical(steps, "waiting") for steps in times]
slow = waiting.index(min(waiting))
step = sum(typical(times[slow], part) for part in times[slow][0])
times.pop(slow)
others = median(typical(steps, "waiting") for steps in times)
return slow if others > waiting[slow] + step / 10 else None
