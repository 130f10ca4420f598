# wrong value: 10 images in 4 parts | [3, 3, 3, 1] differ by more than one
# [answer 1]
return list(zip(images.chunk(parts), labels.chunk(parts), strict=True))
