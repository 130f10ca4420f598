# wrong value: saved 3 times | is 1, expected 3
# [answer 1]
if not path.exists():
    torch.save({"m": model.state_dict(), "o": optimizer.state_dict(), "t": torch.get_rng_state(), "g": loader_generator.get_state(), "n": epochs_run}, path)
# [answer 2]
s = torch.load(path, weights_only=True)
model.load_state_dict(s["m"]); optimizer.load_state_dict(s["o"])
torch.set_rng_state(s["t"]); loader_generator.set_state(s["g"])
return s["n"]
