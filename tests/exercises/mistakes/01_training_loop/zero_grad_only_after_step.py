# wrong value: leftovers
# [answer 2]
(loss / size).backward()
if index % accumulate == size - 1:
    optimizer.step()
    optimizer.zero_grad()
