# wrong value: the gradient of the input x | this rank's own value
# [answer 1]
return gradient
