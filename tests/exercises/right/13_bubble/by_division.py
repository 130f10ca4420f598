# right: slots of the whole step; the smallest of a list
# [answer 1]
slots = 2 * (micro_batches + ranks - 1)
return Fraction(slots, 2 * micro_batches) - 1
# [answer 2]
return {"gpipe": micro_batches, "1f1b": min(ranks - rank, micro_batches)}[schedule]
# [answer 3]
parts = [m for m in range(1, batch_size + 1) if batch_size % m == 0]
return min((m for m in parts if ranks - 1 <= at_most * m), default=None)
