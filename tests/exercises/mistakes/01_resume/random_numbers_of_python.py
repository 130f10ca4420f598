# wrong value: 2 epochs with dropout after the snapshot
# [answer 1]
import random

version, numbers, gauss = random.getstate()
snapshot = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "epochs_run": epochs_run,
    "rng": [version, list(numbers), gauss],
    "loader_rng": loader_generator.get_state(),
}
torch.save(snapshot, path)
# [answer 2]
import random

snapshot = torch.load(path, weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
version, numbers, gauss = snapshot["rng"]
random.setstate((version, tuple(numbers), gauss))
loader_generator.set_state(snapshot["loader_rng"])
return snapshot["epochs_run"]
