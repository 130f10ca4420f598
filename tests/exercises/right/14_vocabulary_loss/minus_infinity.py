# right: the target's score as a maximum over minus infinities
# [answer 1]
top = torch.amax(scores, 1)
dist.all_reduce(top, dist.ReduceOp.MAX)
return top
# [answer 2]
wanted = scores.new_full((len(targets),), float("-inf"))
wanted[is_local] = scores[is_local].gather(1, place[is_local].unsqueeze(1)).squeeze(1)
work = dist.all_reduce(wanted, op=dist.ReduceOp.MAX, async_op=True)
work.wait()
return wanted
# [answer 3]
rows = torch.arange(len(targets))[is_local]
of_scores = chances * gradient.unsqueeze(1)
of_scores[rows, place[is_local]] -= gradient[is_local]
return of_scores, None, None
