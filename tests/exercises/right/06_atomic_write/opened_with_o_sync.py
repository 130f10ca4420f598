# right: each write to the temporary file returns when its bytes are on the disk
temporary = path.with_name(path.name + ".tmp")
try:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DSYNC
    with open(os.open(temporary, flags), "wb") as file:
        torch.save(snapshot, file)
    os.replace(temporary, path)
except BaseException:
    temporary.unlink(missing_ok=True)
    raise
sync_folder(path.parent)
