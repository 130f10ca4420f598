# wrong value: the number recognized of 2 on 4 ranks
# [answer 2]
c = n = 0
for images, labels in loader:
    c += (ddp_model.module(images).argmax(1) == labels).sum().item(); n += len(labels)
t = torch.tensor([c / max(n, 1), 1.0]); dist.all_reduce(t)
return round(t[0].item() / t[1].item() * len(dataset)), len(dataset)
