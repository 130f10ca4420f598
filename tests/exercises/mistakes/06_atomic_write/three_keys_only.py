# wrong value: what the file holds | lacks ['scheduler']
# [answer 1]
temporary = path.with_suffix(".tmp")
known = {key: snapshot[key] for key in ("model", "optimizer", "epochs_run")}
try:
    with open(temporary, "wb") as file:
        torch.save(known, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
except BaseException:
    temporary.unlink(missing_ok=True)
    raise
sync_folder(path.parent)
