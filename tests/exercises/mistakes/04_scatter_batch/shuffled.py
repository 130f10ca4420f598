# wrong value: images joined | parts joined in the wrong order
# [answer 1]
order = torch.randperm(len(images), generator=torch.Generator().manual_seed(3))
used = min(parts, len(images))
images, labels = images[order], labels[order]
return list(zip(images.tensor_split(used), labels.tensor_split(used)))
