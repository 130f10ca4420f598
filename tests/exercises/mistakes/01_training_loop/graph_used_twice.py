# exception: backward | line | call it once for each loss
# [answer 2]
if index % accumulate == 0:
    optimizer.zero_grad()
    summed = 0
summed = summed + loss / size
summed.backward()
if index % accumulate == size - 1:
    optimizer.step()
