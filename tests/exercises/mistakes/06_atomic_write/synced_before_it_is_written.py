# wrong way: flushed 0 of | must come after
temporary = path.with_name(path.name + ".tmp")
try:
    with open(temporary, "wb") as file:
        os.fsync(file.fileno())
        torch.save(snapshot, file)
    os.replace(temporary, path)
except BaseException:
    temporary.unlink(missing_ok=True)
    raise
sync_folder(path.parent)
