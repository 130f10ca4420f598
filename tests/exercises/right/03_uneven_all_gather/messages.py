# right: each rank sends its rows to each other one, a tuple is returned
# [answer 2]
rank = dist.get_rank()
slots = [rows.new_empty(length, rows.shape[1]) for length in lengths]
slots[rank].copy_(rows)
others = [r for r in range(len(lengths)) if r != rank]
work = [dist.isend(rows.contiguous(), r) for r in others if len(rows)]
work += [dist.irecv(slots[r], r) for r in others if lengths[r]]
for request in work:
    request.wait()
return tuple(slots)
