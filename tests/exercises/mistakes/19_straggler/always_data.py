# wrong value: the typical waiting
# [answer 1]
return median(step["data"] for step in steps[1:])
