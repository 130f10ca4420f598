# wrong value: the file holds a tuple, expected a dict
# [answer 1]
if dist.get_rank() == 0:
    torch.save(
        (ddp_model.module.state_dict(), optimizer.state_dict(), epochs_run), path
    )
dist.barrier()
# [answer 2]
m, o, e = torch.load(path, map_location="cpu", weights_only=True)
model.load_state_dict(m)
optimizer.load_state_dict(o)
return e
