# right: the file is tried, the steps come from an iterator, the state goes in one dict
# [answer 1]
done = 0
if os.path.isfile(path):
    state = torch.load(str(path), weights_only=True)
    done = state.pop("done")
    optimizer.load_state_dict(state.pop("optimizer"))
    model.load_state_dict(state)
return done
# [answer 2]
from itertools import count

for step in count(steps_run):
    if step >= total_steps:
        break
    optimizer.zero_grad(set_to_none=False)
    inputs, wanted = data(step)
    F.mse_loss(ddp_model(inputs), wanted).backward()
    optimizer.step()
    due = divmod(step + 1, save_every)[1] == 0
    if due and int(os.environ["RANK"]) == 0:
        state = {"done": step + 1, "optimizer": optimizer.state_dict()}
        write_snapshot(state | dict(model.state_dict()), path)
