# right: adds up the losses of a group and goes backward once
# [answer 2]
if index % accumulate == 0:
    summed = 0
summed = summed + loss / size
if index + 1 == len(batches) or (index + 1) % accumulate == 0:
    optimizer.zero_grad()
    summed.backward()
    optimizer.step()
