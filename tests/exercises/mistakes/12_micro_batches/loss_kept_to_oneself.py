# hang: rank 2 | no message left out
# [answer 2]
waiting = []
parts = zip(images.chunk(micro_batches), labels.chunk(micro_batches), strict=True)
total = 0.0
for part, part_labels in parts:
    inputs, outputs = stage.forward(part)
    if stage.is_last:
        loss = share_of_loss(outputs, part_labels, len(labels))
        loss.backward()
        total = total + loss.detach()
    waiting.append((inputs, outputs))
if not stage.is_last:
    for inputs, outputs in waiting:
        stage.backward(inputs, outputs)
return total if stage.is_last else None
