# right: chunks counted from this rank, what travels is kept in a variable
# [answer 1]
if step == 0:
    travelling = chunks[rank]
mine = chunks[(rank - 1 - step) % len(chunks)]
room = mine.new_empty(mine.size())
exchange(outgoing=travelling, incoming=room)
travelling = mine.add_(room)
# [answer 2]
order = [chunks[(rank + 1 - number) % world_size] for number in range(world_size)]
exchange(order[step], order[step + 1])
