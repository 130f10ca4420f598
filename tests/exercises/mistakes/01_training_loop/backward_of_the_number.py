# exception: AttributeError | 'float' object has no attribute 'backward'
# [answer 2]
if index % accumulate == 0:
    optimizer.zero_grad()
(losses[-1] / size).backward()
if index % accumulate == size - 1:
    optimizer.step()
