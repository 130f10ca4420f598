# crash: SIGABRT | ranks 2 and 3: all_reduce(int64[2] | pass different dtypes
# [answer 2]
right = count = 0
for images, labels in loader:
    hits = ddp_model.module(images).argmax(dim=1) == labels
    right += hits.double().mean().item() * len(labels)
    count += len(labels)
both = torch.tensor([right, count])
dist.all_reduce(both)
return round(both[0].item()), int(both[1])
