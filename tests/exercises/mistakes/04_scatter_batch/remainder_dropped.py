# wrong value: 10 images in 4 parts | is 8, expected 10
# [answer 1]
size = max(1, len(images) // parts)
return [
    (images[i : i + size], labels[i : i + size])
    for i in range(0, size * min(parts, len(images)), size)
]
