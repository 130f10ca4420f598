# wrong value: the rows of rank 0 in the first result, after a second call
# [answer 2]
kept = vars(all_gather_uneven).setdefault("kept", {})
padded = rows.new_zeros(max(lengths), rows.shape[1])
padded[: len(rows)] = rows
key = (rows.dtype, padded.shape)
slots = kept.setdefault(key, [torch.empty_like(padded) for _ in lengths])
dist.all_gather(slots, padded)
return [slot[:n] for slot, n in zip(slots, lengths)]
