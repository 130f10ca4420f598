# exception: 'NoneType' object has no attribute 'append' | self.works.append(
# [answer 3]
for work in self.works:
    work.wait()
self.works = None
