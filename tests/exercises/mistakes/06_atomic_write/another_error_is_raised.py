# wrong value: raised another error | let the error reach the caller | full
# [answer 1]
temporary = path.with_suffix(".tmp")
try:
    with open(temporary, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
except Exception:
    temporary.unlink(missing_ok=True)
    raise RuntimeError("the save failed")
sync_folder(path.parent)
