# wrong value: drawn while the parameters had no memory
# [answer 2]
with torch.device("meta"):
    model = make_model()
shard(model)
model.init_weights()
model.to_empty(device="cpu")
return model, make_optimizer(model.parameters())
