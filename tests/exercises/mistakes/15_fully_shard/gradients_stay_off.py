# wrong value: your code left gradients switched off
# [answer 2]
torch.set_grad_enabled(False)
with torch.device("meta"):
    model = make_model()
shard(model)
model.to_empty(device="cpu")
model.init_weights()
return model, make_optimizer(model.parameters())
