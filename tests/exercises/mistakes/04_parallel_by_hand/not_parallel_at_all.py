# wrong way: never ran at the same time | ran without the others
# [answer 2]
return self.module(inputs)
# [answer 3]
pass
