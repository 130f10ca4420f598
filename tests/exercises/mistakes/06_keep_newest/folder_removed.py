# wrong value: the folder itself is gone
# [answer 3]
import shutil

epochs = complete_epochs(folder)
snapshots = [read_snapshot(folder / f"snapshot_{epoch}.pt") for epoch in epochs[:keep]]
shutil.rmtree(folder)
for snapshot in snapshots:
    torch.save(snapshot, folder.parent / f"snapshot_{snapshot['epoch']}.pt")
