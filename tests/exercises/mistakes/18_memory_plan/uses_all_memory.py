# wrong value: plan of
# [answer 3]
for recompute in (False, True):
    for stage in range(4):
        state = state_bytes(model.parameters, stage, ranks)
        batch = (memory - state) // activation_bytes(model, 1, recompute)
        if batch >= 1:
            return stage, recompute, batch
return None
