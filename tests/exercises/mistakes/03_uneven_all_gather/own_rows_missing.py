# wrong value: the rows of rank
# [answer 2]
padded = rows.new_zeros(max(lengths), *rows.shape[1:])
padded[: len(rows)] = rows
slots = [torch.empty_like(padded) for _ in lengths]
dist.all_gather(slots, padded)
del slots[dist.get_rank()]
return [slot[:length] for slot, length in zip(slots + [rows], lengths)]
