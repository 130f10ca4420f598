# wrong value: scatter must return pairs
# [answer 1]
used = min(parts, len(images))
return [images.tensor_split(used), labels.tensor_split(used)]
