# wrong value: the output | this rank's own value
# [answer 3]
return F.linear(x, self.weight) + self.bias
