# right: an object with state_dict and load_state_dict, which dcp calls
# [answer 2]
class State:
    def state_dict(self):
        of_model, of_optimizer = get_state_dict(model, optimizer)
        rate = scheduler.state_dict()
        return {"model": of_model, "optimizer": of_optimizer, "rate": rate}

    def load_state_dict(self, found):
        raise NotImplementedError


dcp.save({"app": State()}, checkpoint_id=folder)
# [answer 3]
class State:
    def state_dict(self):
        of_model, of_optimizer = get_state_dict(model, optimizer)
        rate = scheduler.state_dict()
        return {"model": of_model, "optimizer": of_optimizer, "rate": rate}

    def load_state_dict(self, found):
        of_model, of_optimizer = found["model"], found["optimizer"]
        how = {"model_state_dict": of_model, "optim_state_dict": of_optimizer}
        set_state_dict(model, optimizer, **how)
        scheduler.load_state_dict(found["rate"])


dcp.load({"app": State()}, checkpoint_id=folder)
