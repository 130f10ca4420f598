# right: everything is flushed to the disks, not this file alone
temporary = path.with_name(path.name + ".tmp")
try:
    torch.save(snapshot, temporary, _use_new_zipfile_serialization=False)
    os.sync()
    os.replace(temporary, path)
    sync_folder(path.parent)
except:
    if temporary.exists():
        temporary.unlink()
    raise
