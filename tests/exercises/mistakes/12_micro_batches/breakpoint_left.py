# exception: starts a debugger | breakpoint()
# [answer 1]
    breakpoint()
    return F.cross_entropy(scores, labels, reduction="sum") / batch_size
# [answer 2]
    pairs = [stage.forward(x) for x in images.chunk(micro_batches)]
    total = torch.zeros((), dtype=torch.float64)
    for (i, o), y in zip(pairs, labels.chunk(micro_batches)):
        l = share_of_loss(o, y, len(images)) if stage.is_last else None
        stage.backward(i, o, l)
        if stage.is_last: total += l.detach()
    return total if stage.is_last else None
