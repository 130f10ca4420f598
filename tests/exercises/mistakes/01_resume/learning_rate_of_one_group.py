# wrong value: 2 epochs after the snapshot, SGD
# [answer 1]
torch.save({"m": model.state_dict(), "o": optimizer.state_dict()["state"], "lr": optimizer.param_groups[0]["lr"], "t": torch.get_rng_state(), "g": loader_generator.get_state(), "n": epochs_run}, path)
# [answer 2]
s = torch.load(path, weights_only=True)
model.load_state_dict(s["m"])
o = optimizer.state_dict(); o["state"] = s["o"]; optimizer.load_state_dict(o)
optimizer.param_groups[0]["lr"] = s["lr"]
torch.set_rng_state(s["t"]); loader_generator.set_state(s["g"])
return s["n"]
