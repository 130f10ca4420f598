# wrong value: 12 images in 4 parts: images joined | another order
# [answer 1]
used = min(parts, len(images))
return [(images[i::used], labels[i::used]) for i in range(used)]
