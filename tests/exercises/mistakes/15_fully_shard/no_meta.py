# wrong way: the whole model was in memory
# [answer 2]
model = make_model()
model.init_weights()
shard(model)
return model, make_optimizer(model.parameters())
