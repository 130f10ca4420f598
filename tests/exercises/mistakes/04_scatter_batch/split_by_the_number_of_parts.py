# wrong value: the number of parts
# [answer 1]
return list(zip(images.split(parts), labels.split(parts), strict=True))
