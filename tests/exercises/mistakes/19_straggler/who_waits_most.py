# wrong value: the slow rank, by
# [answer 2]
waiting = [typical(steps, "waiting") for steps in times]
slow = waiting.index(max(waiting))
others = median(waiting[:slow] + waiting[slow + 1 :])
return slow if others < waiting[slow] else None
