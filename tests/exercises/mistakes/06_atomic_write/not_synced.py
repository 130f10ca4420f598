# wrong way: renamed before os.fsync | power failure
temporary = path.with_name(path.name + ".tmp")
try:
    torch.save(snapshot, temporary)
    os.replace(temporary, path)
except BaseException:
    temporary.unlink(missing_ok=True)
    raise
sync_folder(path.parent)
