# wrong way: never waited for the Work of all_reduce | second =  | keep the Work
total, count = values.sum(), values.new_tensor(len(values))
first = dist.all_reduce(total, async_op=True)
second = dist.all_reduce(count, async_op=True)
first.wait()
return total / count
