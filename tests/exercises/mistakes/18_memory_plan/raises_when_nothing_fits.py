# exception: MemoryError: it does not fit | raise MemoryError
# [answer 3]
for recompute in (False, True):
    for stage in range(4):
        left = memory * 9 // 10 - state_bytes(model.parameters, stage, ranks)
        batch = left // activation_bytes(model, 1, recompute)
        if batch >= 1:
            return stage, recompute, batch
raise MemoryError("it does not fit")
