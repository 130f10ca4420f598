# wrong value: 3 images in 4 parts | part without images
# [answer 1]
return list(
    zip(images.tensor_split(parts), labels.tensor_split(parts), strict=True)
)
