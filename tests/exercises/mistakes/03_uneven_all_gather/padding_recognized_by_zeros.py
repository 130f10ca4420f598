# wrong value: the rows of rank | parts joined in the wrong order
# [answer 2]
# takes a row of zeros for padding; written to the wrong end
padded = rows.new_zeros(max(lengths), *rows.shape[1:])
padded[max(lengths) - len(rows) :] = rows
slots = [torch.empty_like(padded) for _ in lengths]
dist.all_gather(slots, padded)
return [slot[:length] for slot, length in zip(slots, lengths)]
