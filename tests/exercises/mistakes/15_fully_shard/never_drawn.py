# wrong value: the weights were never drawn | init_weights
# [answer 2]
with torch.device("meta"):
    model = make_model()
shard(model)
model.to_empty(device="cpu")
return model, make_optimizer(model.parameters())
