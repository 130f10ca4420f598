# wrong value: 10 images in 4 parts: the number of parts
# [answer 1]
size = round(len(images) / parts) or 1
return list(zip(images.split(size), labels.split(size)))
