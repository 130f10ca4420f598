# wrong value: after 7 micro-batches in groups of 3 | without a step for the smaller group
# [answer 2]
if index % accumulate == 0:
    optimizer.zero_grad()
(loss / size).backward()
if (index + 1) % accumulate == 0:
    optimizer.step()
