# wrong value: of rank
# [answer 2]
actions = order.__dict__.setdefault("actions", [])
actions += [("forward", k) for k in range(ahead)]
for k in range(ahead, micro_batches):
    actions += [("forward", k), ("backward", k - ahead)]
actions += [("backward", k) for k in range(micro_batches - ahead, micro_batches)]
return actions
