# right: a branch for each stage; what is left, divided in floats
# [answer 1]
import math

part = math.ceil(parameters / ranks)
if stage == 0:
    return 16 * parameters
if stage == 1:
    return 4 * parameters + 12 * part
if stage == 2:
    return 2 * parameters + 14 * part
return 16 * part
# [answer 2]
b, t, h = batch, model.context, model.width
layer = 34 * b * t * h + 5 * model.heads * b * t**2
if not recompute:
    return layer * model.layers
return layer + sum(b * t * h * 2 for _ in range(model.layers))
# [answer 3]
for recompute in [False, True]:
    for stage in [0, 1, 2, 3]:
        left = 0.9 * memory - state_bytes(model.parameters, stage, ranks)
        batch = int(left / activation_bytes(model, 1, recompute))
        if batch > 0:
            return (stage, recompute, batch)
return None
