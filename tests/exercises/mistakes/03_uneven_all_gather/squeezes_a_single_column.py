# wrong value: the rows of rank 0, lengths [4, 0, 1, 0] | is float32[4], expected float32[4, 1]
# [answer 2]
padded = rows.new_zeros((max(lengths), rows.shape[1]))
padded[: len(rows)] = rows
padded = padded.squeeze()
slots = [torch.empty_like(padded) for _ in lengths]
dist.all_gather(slots, padded)
return [slot[:n] for slot, n in zip(slots, lengths)]
