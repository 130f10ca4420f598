# right: empty at the very start and after every step
# [answer 1]
groups_before = index // accumulate
left = total - groups_before * accumulate
return accumulate if left >= accumulate else left
# [answer 2]
if index == 0:
    optimizer.zero_grad(set_to_none=False)
loss.mul(1 / size).backward() if size == 1 else loss.div(size).backward()
if index % accumulate == size - 1:
    optimizer.step()
    optimizer.zero_grad()
