# wrong value: 11 images in 4 micro-batches
# [answer 2]
size = -(-len(images) // micro_batches)
waiting = []
for begin in range(0, len(images) - size + 1, size):
    inputs, outputs = stage.forward(images[begin : begin + size])
    loss = None
    if stage.is_last:
        loss = share_of_loss(outputs, labels[begin : begin + size], len(labels))
    waiting.append((inputs, outputs, loss))
for inputs, outputs, loss in waiting:
    stage.backward(inputs, outputs, loss)
return sum(loss.detach() for *_, loss in waiting) if stage.is_last else None
