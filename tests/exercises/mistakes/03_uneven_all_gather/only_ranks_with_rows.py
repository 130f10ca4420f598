# hang: deadlock | all_gather | only some ranks reach
# [answer 2]
padded = rows.new_zeros(max(lengths), *rows.shape[1:])
padded[: len(rows)] = rows
slots = [torch.zeros_like(padded) for _ in lengths]
if len(rows):
    dist.all_gather(slots, padded)
return [slot[:length] for slot, length in zip(slots, lengths)]
