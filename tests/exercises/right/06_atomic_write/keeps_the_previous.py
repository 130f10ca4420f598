# right: the snapshot of before keeps a second name, as on the page
temporary = path.with_name(path.name + ".tmp")
previous = path.with_name(path.name + ".previous")
try:
    with open(temporary, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    if path.exists():
        previous.unlink(missing_ok=True)
        os.link(path, previous)
    os.replace(temporary, path)
except BaseException:
    temporary.unlink(missing_ok=True)
    raise
sync_folder(path.parent)
