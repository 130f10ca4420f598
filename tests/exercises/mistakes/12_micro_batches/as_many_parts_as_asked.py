# exception: IndexError | line
# [answer 2]
waiting = []
image_parts, label_parts = images.chunk(micro_batches), labels.chunk(micro_batches)
for number in range(micro_batches):
    inputs, outputs = stage.forward(image_parts[number])
    loss = None
    if stage.is_last:
        loss = share_of_loss(outputs, label_parts[number], len(labels))
    waiting.append((inputs, outputs, loss))
for inputs, outputs, loss in waiting:
    stage.backward(inputs, outputs, loss)
return sum(loss.detach() for *_, loss in waiting) if stage.is_last else None
