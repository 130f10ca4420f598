# wrong value: in groups of 3 | one batch three times as large
# [answer 2]
optimizer.zero_grad()
(loss / size).backward()
if index % accumulate == size - 1:
    optimizer.step()
