# wrong value: enter.weight is on the meta device
# [answer 2]
with torch.device("meta"):
    model = make_model()
shard(model)
return model, make_optimizer(model.parameters())
