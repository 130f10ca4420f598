# wrong way: the whole model was in memory
# [answer 2]
with torch.device("meta"):
    model = make_model()
model.to_empty(device="cpu")
model.init_weights()
shard(model)
return model, make_optimizer(model.parameters())
