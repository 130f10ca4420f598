# right: blocks in place of strides, two sums
# [answer 1]
return Subset(
    dataset, torch.arange(len(dataset)).tensor_split(world_size)[rank].tolist()
)
# [answer 2]
correct, total = torch.tensor(0), torch.tensor(0)
for images, labels in loader:
    scores = ddp_model.module(images)
    correct += torch.eq(scores.argmax(1), labels).sum()
    total += labels.shape[0]
dist.all_reduce(correct)
dist.all_reduce(total)
return correct.item(), total.item()
