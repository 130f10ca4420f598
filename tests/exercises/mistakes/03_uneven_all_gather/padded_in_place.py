# wrong value: the rows of rank
# [answer 2]
rows.resize_(max(lengths), *rows.shape[1:])
slots = [torch.empty_like(rows) for _ in lengths]
dist.all_gather(slots, rows)
return [slot[: len(rows)] for slot, length in zip(slots, lengths)]
