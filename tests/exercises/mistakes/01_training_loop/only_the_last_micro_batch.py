# wrong value: in groups of 3
# [answer 2]
if index % accumulate == size - 1:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
