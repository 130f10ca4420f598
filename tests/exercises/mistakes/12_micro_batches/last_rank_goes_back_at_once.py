# hang: rank 2 | change their order on one rank
# [answer 2]
waiting, total = [], 0.0
parts = zip(images.chunk(micro_batches), labels.chunk(micro_batches), strict=True)
for part, part_labels in parts:
    inputs, outputs = stage.forward(part)
    if stage.is_last:
        loss = share_of_loss(outputs, part_labels, len(labels))
        stage.backward(inputs, outputs, loss)
        total = total + loss.detach()
    else:
        waiting.append((inputs, outputs))
for inputs, outputs in waiting:
    stage.backward(inputs, outputs)
return total if stage.is_last else None
