# wrong value: batch is 1, expected
# [answer 3]
for recompute in (False, True):
    for stage in range(4):
        held = state_bytes(model.parameters, stage, ranks)
        held += activation_bytes(model, 1, recompute)
        if 10 * held <= 9 * memory:
            return stage, recompute, 1
return None
