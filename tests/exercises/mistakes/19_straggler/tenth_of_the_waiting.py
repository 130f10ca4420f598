# wrong value: without a slow rank
# [answer 2]
waiting = [typical(steps, "waiting") for steps in times]
slow = waiting.index(min(waiting))
others = median(waiting[:slow] + waiting[slow + 1 :])
return slow if others > waiting[slow] * 1.1 else None
