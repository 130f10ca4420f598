# wrong value: 3 sequence(s), kept
# [answer 2]
tokens = batch * model.context
layer = 34 * tokens * model.width + 5 * model.heads * tokens**2
if recompute:
    return 2 * tokens * model.width * model.layers + layer
return model.layers * layer
