# wrong value: your code left the default device at meta
# [answer 2]
torch.set_default_device("meta")
model = make_model()
shard(model)
model.to_empty(device="cpu")
model.init_weights()
return model, make_optimizer(model.parameters())
