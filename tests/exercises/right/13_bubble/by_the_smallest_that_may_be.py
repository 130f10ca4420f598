# right: counts from the smallest number that is fine enough; slots of all ranks
# [answer 1]
step = 2 * (micro_batches + ranks - 1)
useful = 2 * micro_batches * ranks
return Fraction(step * ranks - useful, useful)
# [answer 2]
ahead = ranks - rank
return ahead if schedule == "1f1b" and ahead < micro_batches else micro_batches
# [answer 3]
count = 1
while count <= batch_size:
    if not batch_size % count and Fraction(ranks - 1, count) <= at_most:
        return count
    count += 1
