# right: no flush, because torch.save flushes the file it was given
temporary = path.with_name(path.name + ".tmp")
try:
    with open(temporary, "wb") as file:
        torch.save(snapshot, file)
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_folder(path.parent)
finally:
    temporary.unlink(missing_ok=True)
