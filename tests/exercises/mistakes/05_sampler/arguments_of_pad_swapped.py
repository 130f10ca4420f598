# exception: ZeroDivisionError | called at line | pad(epoch_order(size, epoch, seed, shuffle), rank)
# [answer 2]
missing = -len(indices) % world_size
return indices + (indices * missing)[:missing]
# [answer 3]
padded = pad(epoch_order(size, epoch, seed, shuffle), rank)
return padded[world_size::rank]
