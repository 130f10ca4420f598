# wrong value: without a slow rank
# [answer 2]
waiting = [typical(steps, "waiting") for steps in times]
return waiting.index(min(waiting))
