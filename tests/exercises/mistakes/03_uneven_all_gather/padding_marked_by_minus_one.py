# wrong value: the rows of rank
# [answer 2]
padded = rows.new_full((max(lengths), *rows.shape[1:]), -1)
padded[: len(rows)] = rows
slots = [torch.empty_like(padded) for _ in lengths]
dist.all_gather(slots, padded)
return [slot[(slot != -1).all(dim=1)] for slot in slots]
