# wrong value: train_epoch left | in evaluation mode
# [answer 2]
if index % accumulate == 0:
    optimizer.zero_grad()
(loss / size).backward()
if (index + 1) % accumulate == 0 or index + 1 == len(batches):
    optimizer.step()
    model.eval()
