# wrong value: plain loop | after 4 micro-batches in groups of 1
# [answer 2]
if index % accumulate == 0:
    optimizer.zero_grad()
(loss / size).backward()
if index % accumulate == size - 1:
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
