# wrong value: the numbers of labels
# [answer 1]
used = min(parts, len(images))
return [(part, labels) for part in images.tensor_split(used)]
