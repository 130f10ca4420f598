# right: the larger parts are not the first ones; a product of vectors
# [answer 1]
n, used = len(images), min(parts, len(images))
places = [n * i // used for i in range(used + 1)]
return [
    (images[a:b], labels[a:b]) for a, b in zip(places[:-1], places[1:], strict=True)
]
# [answer 2]
sizes = losses[0].new_tensor(sizes)
return torch.stack(losses) @ sizes / sizes.sum()
