# wrong value: with a disk that is full | the old snapshot is lost
temporary = path.with_name(path.name + ".tmp")
try:
    with open(temporary, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
except Exception:
    temporary.unlink(missing_ok=True)
    torch.save(snapshot, path)
sync_folder(path.parent)
