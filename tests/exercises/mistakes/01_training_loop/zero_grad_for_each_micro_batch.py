# wrong value: in groups of 3 | the last micro-batch of each group alone
# [answer 2]
optimizer.zero_grad()
(loss / size).backward()
if index % accumulate == size - 1:
    optimizer.step()
