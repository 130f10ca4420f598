# wrong value: plain loop | after 4 micro-batches in groups of 1
# [answer 2]
(loss / size).backward()
if index % accumulate == size - 1:
    optimizer.step()
