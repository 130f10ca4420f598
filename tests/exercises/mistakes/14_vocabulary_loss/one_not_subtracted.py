# wrong value: the gradient of the own scores
# [answer 3]
return chances * gradient[:, None], None, None
