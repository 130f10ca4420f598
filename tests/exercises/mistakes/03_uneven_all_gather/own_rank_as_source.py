# hang: deadlock | root | pass different roots
# [answer 2]
slots = [rows.new_empty(length, *rows.shape[1:]) for length in lengths]
for slot in slots:
    slot.copy_(rows) if len(slot) == len(rows) else None
    dist.broadcast(slot, src=dist.get_rank())
return slots
