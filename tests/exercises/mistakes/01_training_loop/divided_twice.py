# wrong value: in groups of 3
# [answer 2]
if index % accumulate == 0:
    optimizer.zero_grad()
(loss / size).backward()
if index % accumulate == size - 1:
    for parameter in model.parameters():
        parameter.grad /= size
    optimizer.step()
