# right: lists of slices, pairs as lists; a dot product
# [answer 1]
pairs, rest = [], min(parts, len(images))
while rest:
    size = -(-len(images) // rest)
    pairs.append([images[:size], labels[:size]])
    images, labels, rest = images[size:], labels[size:], rest - 1
return pairs
# [answer 2]
total = sum(sizes)
return torch.dot(torch.stack(losses), losses[0].new_tensor([n / total for n in sizes]))
