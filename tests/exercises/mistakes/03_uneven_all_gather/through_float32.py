# wrong value: the rows of rank
# [answer 2]
padded = torch.zeros(max(lengths), *rows.shape[1:])
padded[: len(rows)] = rows
slots = [torch.empty_like(padded) for _ in lengths]
dist.all_gather(slots, padded)
return [slot[:length].to(rows.dtype) for slot, length in zip(slots, lengths)]
