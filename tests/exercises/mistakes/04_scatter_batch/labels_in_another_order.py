# wrong value: labels joined | parts joined in the wrong order
# [answer 1]
used = min(parts, len(images))
return list(zip(images.tensor_split(used), labels.flip(0).tensor_split(used)))
