# wrong value: 1 sequence(s), recomputed
# [answer 2]
stream = batch * model.context * model.width
if recompute:
    return 2 * stream * model.layers
return model.layers * (34 * stream + 5 * model.heads * batch * model.context**2)
