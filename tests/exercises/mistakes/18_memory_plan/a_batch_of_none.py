# wrong value: but nothing fits
# [answer 3]
for recompute in (False, True):
    for stage in range(4):
        state = state_bytes(model.parameters, stage, ranks)
        batch = (memory * 9 // 10 - state) // activation_bytes(model, 1, recompute)
        if batch >= 1:
            return stage, recompute, batch
return 3, True, 0
