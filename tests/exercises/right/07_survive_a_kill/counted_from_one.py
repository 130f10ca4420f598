# right: steps counted from one, a tuple on disk, the loss as a module
# [answer 1]
try:
    weights, moments, done = torch.load(path, weights_only=True)
except FileNotFoundError:
    return 0
model.load_state_dict(weights)
optimizer.load_state_dict(moments)
return done
# [answer 2]
criterion = nn.MSELoss()
for done in range(steps_run + 1, total_steps + 1):
    x, y = data(done - 1)
    criterion(ddp_model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
    if not done % save_every and not dist.get_rank():
        weights = ddp_model.module.state_dict()
        write_snapshot((weights, optimizer.state_dict(), done), path)
