# exception: second time | went through one graph twice
# [answer 1]
    return F.cross_entropy(scores, labels, reduction="sum") / batch_size
# [answer 2]
    pairs = [stage.forward(x) for x in images.chunk(micro_batches)]
    ys = labels.chunk(micro_batches)
    total = sum(share_of_loss(o, y, len(images)) for (_, o), y in zip(pairs, ys)) if stage.is_last else None
    for i, o in pairs:
        stage.backward(i, o, total)
    return total
