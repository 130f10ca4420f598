# wrong value: the typical data time
# [answer 1]
return median(step[part] for step in steps[:-1])
