# wrong value: scatter returned a zip, expected a list
# [answer 1]
used = min(parts, len(images))
return zip(images.tensor_split(used), labels.tensor_split(used))
