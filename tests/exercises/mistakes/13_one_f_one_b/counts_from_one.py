# wrong value: forwards of rank 0
# [answer 2]
actions = [("forward", k + 1) for k in range(ahead)]
for k in range(ahead, micro_batches):
    actions += [("forward", k + 1), ("backward", k + 1 - ahead)]
actions += [("backward", k + 1) for k in range(micro_batches - ahead, micro_batches)]
return actions
