# wrong value: the gradient of the input x | never added up (T01)
# [answer 1]
return gradient
