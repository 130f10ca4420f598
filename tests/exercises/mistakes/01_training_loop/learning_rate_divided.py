# wrong value: AdamW
# [answer 2]
if index % accumulate == 0:
    optimizer.zero_grad()
loss.backward()
if index % accumulate == size - 1:
    rates = [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["lr"] /= size
    optimizer.step()
    for group, rate in zip(optimizer.param_groups, rates):
        group["lr"] = rate
