# right: all forwards in a comprehension, the loss added up by backward's order
# [answer 1]
return F.nll_loss(F.log_softmax(scores, 1), labels).mul(scores.shape[0] / batch_size)
# [answer 2]
done = [stage.forward(part) for part in torch.chunk(images, micro_batches)]
mean = None
for (x, y), part in zip(done, torch.chunk(labels, micro_batches)):
    if not stage.is_last:
        stage.backward(x, y)
        continue
    loss = share_of_loss(y, part, batch_size=labels.numel())
    mean = loss.item() if mean is None else mean + loss.item()
    stage.backward(x, y, loss)
return None if mean is None else torch.tensor(mean, dtype=torch.float64)
