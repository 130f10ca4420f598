# wrong value: the mean loss that train_epoch returns
# [answer 2]
if index % accumulate == 0:
    optimizer.zero_grad()
loss = loss / size
losses[-1] = loss.item()
loss.backward()
if index % accumulate == size - 1:
    optimizer.step()
