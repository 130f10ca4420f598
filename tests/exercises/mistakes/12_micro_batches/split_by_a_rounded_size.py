# wrong way: it is 3 and 3 | chunk cuts 6 images into 3
# [answer 2]
parts = [stage.forward(p) for p in images.split(max(1, len(images) // micro_batches))]
losses = [share_of_loss(out, lab, len(labels)) for (_, out), lab in zip(parts, labels.split(max(1, len(labels) // micro_batches)))] if stage.is_last else [None] * len(parts)
for (i, o), l in zip(parts, losses):
    stage.backward(i, o, l)
return sum(losses) if stage.is_last else None
