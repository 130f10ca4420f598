# wrong value: after a kill at byte | the old snapshot is lost
previous = path.with_name(path.name + ".old")
if path.exists():
    os.replace(path, previous)
torch.save(snapshot, path)
previous.unlink(missing_ok=True)
sync_folder(path.parent)
