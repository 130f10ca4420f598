# wrong value: in groups of
# [answer 2]
if (index + 1) % accumulate == 0:
    optimizer.zero_grad()
(loss / size).backward()
if (index + 1) % accumulate == size % accumulate:
    optimizer.step()
