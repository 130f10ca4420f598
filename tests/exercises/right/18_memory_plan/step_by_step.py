# right: lists of sizes; grows the batch until it is too large
# [answer 1]
import math

total = 0
for size, first in ((2, 3), (2, 2), (12, 1)):
    total += size * (math.ceil(parameters / ranks) if stage >= first else parameters)
return total
# [answer 2]
tokens = model.context * batch
layer = tokens * (34 * model.width + 5 * model.heads * model.context)
kept = 2 * tokens * model.width if recompute else layer
return model.layers * kept + (layer if recompute else 0)
# [answer 3]
plans = [(again, stage) for again in (False, True) for stage in (0, 1, 2, 3)]
for again, stage in plans:
    state, batch = state_bytes(model.parameters, stage, ranks), 0
    while 10 * (state + activation_bytes(model, batch + 1, again)) <= 9 * memory:
        batch += 1
    if batch:
        return (stage, again, batch)
