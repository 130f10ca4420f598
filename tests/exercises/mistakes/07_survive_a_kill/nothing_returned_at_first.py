# wrong value: at the first start | load returned None: is a `return` missing?
# [answer 1]
if path.exists():
    saved = torch.load(path, weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["steps_run"]
