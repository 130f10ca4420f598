# right: a while loop, states in a list, rank 0 reads the file for all
# [answer 1]
box = [None]
if dist.get_rank() == 0 and path.exists():
    box[0] = torch.load(path, weights_only=True)
dist.broadcast_object_list(box, src=0)
if box[0] is None:
    return 0
for part, state in zip((model, optimizer), box[0]["states"]):
    part.load_state_dict(state)
return box[0]["done"]
# [answer 2]
while steps_run < total_steps:
    x, y = data(steps_run)
    optimizer.zero_grad()
    loss = (ddp_model(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    steps_run += 1
    if not steps_run % save_every:
        if dist.get_rank() == 0:
            states = [part.state_dict() for part in (model, optimizer)]
            write_snapshot({"states": states, "done": steps_run}, path)
        dist.barrier()
