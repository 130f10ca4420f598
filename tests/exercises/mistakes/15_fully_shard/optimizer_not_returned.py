# wrong value: build should return the model and its optimizer
# [answer 2]
with torch.device("meta"):
    model = make_model()
shard(model)
model.to_empty(device="cpu")
model.init_weights()
make_optimizer(model.parameters())
return model
