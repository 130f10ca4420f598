# wrong value: after 5 micro-batches in groups of 3
# [answer 2]
if index % size == 0:
    optimizer.zero_grad()
(loss / size).backward()
if index % size == size - 1:
    optimizer.step()
