# wrong value: action 0 is ('f', 0); expected ("forward", k)
# [answer 2]
actions = [("F", k) for k in range(ahead)]
for k in range(ahead, micro_batches):
    actions += [("F", k), ("B", k - ahead)]
return actions + [("B", k) for k in range(micro_batches - ahead, micro_batches)]
