# wrong value: gather_lengths, item 1 | expected 70
# [answer 1]
slots = [torch.zeros(1, dtype=torch.uint8) for _ in range(dist.get_world_size())]
dist.all_gather(slots, torch.tensor([length]).to(torch.uint8))
return [int(slot) for slot in slots]
