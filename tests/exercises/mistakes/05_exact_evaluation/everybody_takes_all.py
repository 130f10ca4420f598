# wrong value: images in more than one share
# [answer 1]
return Subset(dataset, range(len(dataset)))
