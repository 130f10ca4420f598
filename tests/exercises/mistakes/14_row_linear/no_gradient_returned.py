# wrong value: weight got no gradient | backward of g returned None
# [answer 2]
return None
