# exception: all_gather
# [answer 2]
padded = rows.new_zeros(max(lengths), *rows.shape[1:])
padded[: len(rows)] = rows
slots = [torch.empty(padded.shape) for _ in lengths]
dist.all_gather(slots, padded)
return [slot[:length].to(rows.dtype) for slot, length in zip(slots, lengths)]
