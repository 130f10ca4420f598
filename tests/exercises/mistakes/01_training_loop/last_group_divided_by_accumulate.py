# wrong value: after 7 micro-batches in groups of 3 | divided by accumulate in the smaller group
# [answer 2]
if index % accumulate == 0:
    optimizer.zero_grad()
(loss / accumulate).backward()
if index % accumulate == size - 1:
    optimizer.step()
