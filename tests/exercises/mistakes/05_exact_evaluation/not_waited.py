# wrong way: never waited for the Work of all_reduce | keep the Work
# [answer 2]
counts = torch.zeros(2, dtype=torch.int64)
for images, labels in loader:
    predicted = ddp_model.module(images).argmax(dim=1)
    counts += torch.tensor([int((predicted == labels).sum()), len(labels)])
dist.all_reduce(counts, async_op=True)
import time
time.sleep(1.5)
return int(counts[0]), int(counts[1])
