# wrong value: recompute is 0, expected False
# [answer 3]
for recompute in (0, 1):
    for stage in range(4):
        left = memory * 9 // 10 - state_bytes(model.parameters, stage, ranks)
        batch = left // activation_bytes(model, 1, recompute)
        if batch >= 1:
            return stage, recompute, batch
return None
