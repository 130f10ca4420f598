# wrong way: never ran at the same time | one after the other
# [answer 2]
return self.module(inputs)
# [answer 3]
pass
