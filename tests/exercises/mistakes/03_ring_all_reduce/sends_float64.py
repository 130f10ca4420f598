# wrong value: int64 | last digits
# [answer 1]
send, recv = (rank - step) % world_size, (rank - step - 1) % world_size
got = torch.empty(len(chunks[recv]), dtype=torch.float64)
exchange(chunks[send].double(), got)
chunks[recv].copy_(chunks[recv] + got)
