# wrong value: with 4,458 bytes | is none, expected (0, false, 1)
# [answer 3]
for recompute in (False, True):
    for stage in range(4):
        room = memory // 10 * 9 - state_bytes(model.parameters, stage, ranks)
        batch = room // activation_bytes(model, 1, recompute)
        if batch >= 1:
            return stage, recompute, batch
return None
