# wrong value: the sum of 3 shares of 12 images
# [answer 1]
return F.cross_entropy(scores, labels, reduction="sum")
