# wrong value: in groups of 3 | one batch three times as large
# [answer 2]
if index % accumulate == 0:
    optimizer.zero_grad()
(loss / size).backward()
optimizer.step()
