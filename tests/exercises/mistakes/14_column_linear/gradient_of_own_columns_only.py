# wrong value: the gradient of the input x | never added up
# [answer 1]
return gradient
