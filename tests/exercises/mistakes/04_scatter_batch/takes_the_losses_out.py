# wrong value: losses in the list that was passed | is 0, expected 3
# [answer 2]
total, images = 0, sum(sizes)
while losses:
    total = total + losses.pop() * sizes[len(losses)]
return total / images
