# wrong way: never waited for the Work of all_reduce
# [answer 3]
self.works.clear()
