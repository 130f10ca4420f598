# wrong value: stage is
# [answer 3]
for stage in range(4):
    for recompute in (False, True):
        state = state_bytes(model.parameters, stage, ranks)
        batch = (memory * 9 // 10 - state) // activation_bytes(model, 1, recompute)
        if batch >= 1:
            return stage, recompute, batch
return None
