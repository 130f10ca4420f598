# exception: modified by an inplace operation | only after backward()
# [answer 2]
if index % accumulate == 0:
    if index:
        optimizer.step()
    optimizer.zero_grad()
(loss / size).backward()
