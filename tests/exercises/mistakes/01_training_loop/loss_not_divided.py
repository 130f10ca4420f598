# wrong value: in groups of 3 | that of losses which aren't divided
# [answer 2]
if index % accumulate == 0:
    optimizer.zero_grad()
loss.backward()
if index % accumulate == size - 1:
    optimizer.step()
