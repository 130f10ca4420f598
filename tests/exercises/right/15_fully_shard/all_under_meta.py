# right: everything under the device, where to_empty names another
# [answer 2]
with torch.device("meta"):
    model = make_model()
    shard(model)
    model.to_empty(device="cpu")
    model.init_weights()
    return model, make_optimizer(model.parameters())
