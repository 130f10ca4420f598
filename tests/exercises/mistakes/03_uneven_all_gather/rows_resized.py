# wrong value: this rank's own rows afterwards
# [answer 2]
rows.resize_(max(lengths), *rows.shape[1:])
slots = [torch.empty_like(rows) for _ in lengths]
dist.all_gather(slots, rows)
return [slot[:length].clone() for slot, length in zip(slots, lengths)]
