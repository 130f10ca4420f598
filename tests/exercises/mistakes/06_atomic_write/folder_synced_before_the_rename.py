# wrong way: not synced after the rename | sync_folder was called before it
temporary = path.with_name(path.name + ".tmp")
try:
    with open(temporary, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)
    os.replace(temporary, path)
except BaseException:
    temporary.unlink(missing_ok=True)
    raise
