# wrong value: after 4 micro-batches in groups of 1
# [answer 2]
if index % accumulate == 0:
    optimizer.zero_grad()
if index % accumulate == size - 1:
    optimizer.step()
(loss / size).backward()
