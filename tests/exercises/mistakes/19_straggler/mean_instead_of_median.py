# wrong value: the typical data time
# [answer 1]
return sum(step[part] for step in steps[1:]) / (len(steps) - 1)
