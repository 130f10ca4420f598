# exception: to_empty
# [answer 2]
with torch.device("meta"):
    model = make_model()
shard(model)
model.to("cpu")
model.init_weights()
return model, make_optimizer(model.parameters())
