# right: gathers, and takes the total from the dataset
# [answer 2]
model = ddp_model.module
mine = sum(int((model(x).argmax(dim=1) == y).sum()) for x, y in loader)
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, mine)
return sum(everyone), len(dataset)
