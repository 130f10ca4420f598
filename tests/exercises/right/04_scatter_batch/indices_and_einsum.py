# right: parts by index tensors; the weighted sum by einsum
# [answer 1]
places = torch.arange(images.size(0)).tensor_split(min(parts, images.size(0)))
return [(images[place], labels[place]) for place in places]
# [answer 2]
weights = torch.as_tensor(sizes, dtype=losses[0].dtype)
return torch.einsum("i,i->", torch.stack(losses), weights) / weights.sum()
