# wrong value: 1 sequence(s), kept
# [answer 2]
stream = batch * model.context * model.width
layer = 34 * stream + 5 * model.heads * stream
if recompute:
    return 2 * stream * model.layers + layer
return model.layers * layer
