# wrong way: self.works still holds 4 averages after finish()
# [answer 3]
for work in self.works:
    work.wait()
