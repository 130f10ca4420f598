# right: the bytes of the rows, whatever their dtype is
# [answer 2]
own = rows.contiguous().flatten().view(torch.uint8)
width = rows.shape[1]
size = max(lengths) * width * rows.element_size()
padded = torch.zeros(size, dtype=torch.uint8)
padded[: own.numel()] = own
slots = [torch.empty_like(padded) for _ in lengths]
dist.all_gather(slots, padded)
return [slot.view(rows.dtype).view(-1, width)[:n] for slot, n in zip(slots, lengths)]
