# wrong value: the sizes that were passed
# [answer 2]
total, count = 0, 0
for loss in losses:
    total, count = total + loss * sizes[0], count + sizes.pop(0)
return total / count
