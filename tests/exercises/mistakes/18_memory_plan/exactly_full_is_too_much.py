# wrong value: with 4,440 bytes is None
# [answer 3]
for recompute in (False, True):
    for stage in range(4):
        batch = 0
        state = state_bytes(model.parameters, stage, ranks)
        while (
            state + activation_bytes(model, batch + 1, recompute) < memory * 9 // 10
        ):
            batch += 1
        if batch:
            return stage, recompute, batch
return None
