# wrong value: enter.weight as the model has it now is not in the optimizer
# [answer 2]
with torch.device("meta"):
    model = make_model()
optimizer = make_optimizer(model.parameters())
shard(model)
model.to_empty(device="cpu")
model.init_weights()
return model, optimizer
