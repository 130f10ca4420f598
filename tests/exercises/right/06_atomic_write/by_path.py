# right, torch>=2.10: torch.save opens the file itself, a second open brings it onto the disk
temporary = path.with_suffix(".new")
try:
    torch.save(snapshot, str(temporary))
    with open(temporary, "rb+") as file:
        os.fdatasync(file.fileno())
    os.rename(temporary, path)
except Exception:
    if temporary.exists():
        os.remove(temporary)
    raise
sync_folder(path.parent)
