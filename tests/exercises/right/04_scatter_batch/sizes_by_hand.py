# right: sizes by division with remainder; a running sum of the loss
# [answer 1]
used = min(parts, len(images))
small, more = divmod(len(images), used)
sizes = [small + (i < more) for i in range(used)]
return list(zip(images.split(sizes), labels.split(sizes), strict=True))
# [answer 2]
total = 0
for loss, size in zip(losses, sizes, strict=True):
    total = total + size * loss
return total / sum(sizes)
