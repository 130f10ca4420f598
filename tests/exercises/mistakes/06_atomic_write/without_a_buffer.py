# wrong value: after a kill at byte | cannot be loaded
import contextlib

temporary = path.with_suffix(".new")
temporary.unlink(missing_ok=True)
with contextlib.ExitStack() as stack:
    stack.callback(lambda: temporary.unlink(missing_ok=True))
    file = stack.enter_context(open(temporary, "xb", buffering=0))
    torch.save(snapshot, file)
    os.fsync(file)
    os.rename(str(temporary), str(path))
sync_folder(path.parent)
