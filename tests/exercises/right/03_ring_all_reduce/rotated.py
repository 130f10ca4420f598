# right: chunks counted from this rank, what travels is kept in a variable
# [answer 1]
if step == 0:
    travelling = chunks[rank]
own = chunks[(rank - 1 - step) % len(chunks)]
room = own.new_empty(own.size())
exchange(outgoing=travelling, incoming=room)
travelling = own.add_(room)
# [answer 2]
order = [chunks[(rank + 1 - number) % world_size] for number in range(world_size)]
exchange(order[step], order[step + 1])
