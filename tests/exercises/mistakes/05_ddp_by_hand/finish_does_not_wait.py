# wrong value: .grad
# [answer 3]
self.works.clear()
