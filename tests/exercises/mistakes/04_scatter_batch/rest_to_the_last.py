# wrong value: differ by more than one
# [answer 1]
size = max(1, len(images) // parts)
places = [i * size for i in range(1, min(parts, len(images)))]
return list(
    zip(images.tensor_split(places), labels.tensor_split(places), strict=True)
)
