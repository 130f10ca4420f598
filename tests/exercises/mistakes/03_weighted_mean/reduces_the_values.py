# crash: the ranks pass different shapes
count = values.new_tensor(len(values))
total = values.clone()
dist.all_reduce(total)
dist.all_reduce(count)
return total.sum() / count
