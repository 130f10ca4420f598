# wrong value: plain loop | in groups of 1
# [answer 2]
(loss / size).backward()
if index % accumulate == size - 1:
    optimizer.zero_grad()
    optimizer.step()
