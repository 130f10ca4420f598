# wrong value: all_gather_uneven | returned Tensor, expected list
# [answer 2]
padded = rows.new_zeros(max(lengths), *rows.shape[1:])
padded[: len(rows)] = rows
slots = [torch.empty_like(padded) for _ in lengths]
dist.all_gather(slots, padded)
return torch.cat([slot[:length] for slot, length in zip(slots, lengths)])
