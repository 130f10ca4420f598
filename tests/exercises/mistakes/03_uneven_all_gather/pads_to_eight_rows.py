# wrong way: pad to the longest length
# [answer 2]
longest = max(max(lengths), 8)
padded = torch.zeros(longest, rows.shape[1], dtype=rows.dtype); padded[: len(rows)] = rows
out = [torch.zeros_like(padded) for _ in lengths]
dist.all_gather(out, padded)
return [t[:n] for t, n in zip(out, lengths)]
