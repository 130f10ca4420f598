# right: looks at what is held instead of counting in phases
# [answer 1]
ahead = ranks - 1 - rank
# [answer 2]
actions, forwards, backwards = [], 0, 0
while backwards < micro_batches:
    if forwards < micro_batches and forwards - backwards <= ahead:
        actions.append(("forward", forwards))
        forwards += 1
    else:
        actions.append(("backward", backwards))
        backwards += 1
return actions
