# wrong value: the loss of parts of
# [answer 2]
return losses[sizes.index(max(sizes))]
