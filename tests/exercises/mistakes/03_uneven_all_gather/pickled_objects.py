# wrong way: objects were pickled
# [answer 2]
slots = [None] * len(lengths)
dist.all_gather_object(slots, rows)
return slots
