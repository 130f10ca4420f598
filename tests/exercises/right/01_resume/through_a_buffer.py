# right: written as bytes, states under the names of their owners
# [answer 1]
import io

buffer = io.BytesIO()
state = dict(epochs=epochs_run, order=loader_generator.get_state())
state["global"] = torch.default_generator.get_state()
for name, part in {"net": model, "opt": optimizer}.items():
    state[name] = part.state_dict()
torch.save(state, buffer)
path.write_bytes(buffer.getvalue())
# [answer 2]
with path.open("rb") as file:
    state = torch.load(file, map_location="cpu")
loader_generator.set_state(state["order"])
optimizer.load_state_dict(state["opt"])
model.load_state_dict(state["net"], strict=True)
torch.default_generator.set_state(state["global"])
return int(state["epochs"])
