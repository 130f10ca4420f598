# wrong way: objects were pickled
# [answer 2]
gather = dist.all_gather_object
slots = [None] * len(lengths)
gather(slots, rows)
return slots
