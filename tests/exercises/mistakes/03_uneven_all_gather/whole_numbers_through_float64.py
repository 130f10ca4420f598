# wrong value: torch.int64 | a whole number's last digits are lost
# [answer 2]
padded = torch.zeros(max(lengths), rows.shape[1], dtype=torch.float64)
padded[: len(rows)] = rows
slots = [torch.empty_like(padded) for _ in lengths]
dist.all_gather(slots, padded)
return [slot[:n].to(rows.dtype) for slot, n in zip(slots, lengths)]
