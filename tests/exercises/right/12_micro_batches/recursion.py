# right: recursion, so that the last micro-batch goes back first
# [answer 1]
    weight = scores.shape[0] / batch_size
    return nn.functional.cross_entropy(scores, labels) * weight
# [answer 2]
    pieces = list(zip(images.chunk(micro_batches), labels.chunk(micro_batches), strict=True))
    def go(k):
        if k == len(pieces):
            return []
        i, o = stage.forward(pieces[k][0])
        l = share_of_loss(o, pieces[k][1], len(labels)) if stage.is_last else None
        rest = go(k + 1)
        stage.backward(i, o, l)
        return [l, *rest]
    losses = go(0)
    return sum(losses) if stage.is_last else None
