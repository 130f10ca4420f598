# wrong way: renamed before os.fsync flushed it
temporary = path.with_name(path.name + ".tmp")
try:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_SYNC
    os.close(os.open(temporary, flags))
    torch.save(snapshot, temporary)
    os.replace(temporary, path)
except BaseException:
    temporary.unlink(missing_ok=True)
    raise
sync_folder(path.parent)
