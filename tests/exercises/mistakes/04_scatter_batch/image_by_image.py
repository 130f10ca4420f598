# wrong value: a part has one label for all of its images
# [answer 1]
return [(images[i], labels[i]) for i in range(len(images))]
