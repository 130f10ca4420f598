# exception: modified by an inplace operation
# [answer 2]
if index % accumulate == 0:
    if index:
        optimizer.step()
    optimizer.zero_grad()
(loss / size).backward()
