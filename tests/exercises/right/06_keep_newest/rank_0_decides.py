# right: rank 0 gathers and decides, and sends the answer; sets in place of slices
# [answer 1]
epochs = [
    int(match[1])
    for match in map(NAME.fullmatch, sorted(path.name for path in folder.iterdir()))
    if match and read_snapshot(folder / match[0]) is not None
]
return sorted(epochs, key=lambda epoch: -epoch)
# [answer 2]
everyone = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
dist.gather_object(own, everyone, dst=0)
answer = [None]
if everyone:
    in_all = [e for e in everyone[0] if all(e in others for others in everyone)]
    answer = in_all[:1] or [None]
dist.broadcast_object_list(answer)
return answer[0]
# [answer 3]
complete = complete_epochs(folder)
for epoch in set(complete) - set(complete[:keep]):
    os_path = folder / f"snapshot_{epoch}.pt"
    os_path.unlink(missing_ok=True)
