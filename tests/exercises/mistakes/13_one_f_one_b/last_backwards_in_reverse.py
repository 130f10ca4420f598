# wrong value: backwards of rank 0
# [answer 2]
actions = [("forward", k) for k in range(ahead)]
for k in range(ahead, micro_batches):
    actions += [("forward", k), ("backward", k - ahead)]
left = range(micro_batches - ahead, micro_batches)
return actions + [("backward", k) for k in reversed(left)]
