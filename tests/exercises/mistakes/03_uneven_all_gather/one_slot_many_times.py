# wrong value: the rows of rank | [t] * world_size
# [answer 2]
padded = rows.new_zeros(max(lengths), *rows.shape[1:])
padded[: len(rows)] = rows
slots = [torch.empty_like(padded)] * len(lengths)
dist.all_gather(slots, padded)
return [slot[:length] for slot, length in zip(slots, lengths)]
