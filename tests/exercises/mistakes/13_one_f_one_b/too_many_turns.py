# wrong value: forwards of rank 0
# [answer 2]
actions = [("forward", k) for k in range(ahead)]
for k in range(micro_batches):
    actions += [("forward", k + ahead), ("backward", k)]
return actions
