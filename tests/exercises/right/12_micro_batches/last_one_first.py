# right: backward begins with the micro-batch that came last, on all ranks
# [answer 1]
return F.cross_entropy(scores, labels) * len(labels) / batch_size
# [answer 2]
done, losses = [], []
labels_of = labels.chunk(micro_batches)
for number, part in enumerate(images.chunk(micro_batches)):
    done.append(stage.forward(part))
    if stage.is_last:
        losses.append(share_of_loss(done[-1][1], labels_of[number], len(labels)))
for number in reversed(range(len(done))):
    stage.backward(*done[number], losses[number] if losses else None)
return torch.stack(losses).sum() if losses else None
