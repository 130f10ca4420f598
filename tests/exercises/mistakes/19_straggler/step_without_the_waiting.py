# wrong value: the slow rank, if ranks wait [0.79, 0.6] s | is 1, expected none
# [answer 2]
waiting = [typical(steps, "waiting") for steps in times]
slow = waiting.index(min(waiting))
others = median(waiting[:slow] + waiting[slow + 1 :])
step = typical(times[slow], "data") + typical(times[slow], "compute")
return slow if others > waiting[slow] + step / 10 else None
