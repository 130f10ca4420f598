# wrong value: after a kill at byte | the old snapshot is lost
with open(path, "wb") as file:
    torch.save(snapshot, file)
    file.flush()
    os.fsync(file.fileno())
sync_folder(path.parent)
