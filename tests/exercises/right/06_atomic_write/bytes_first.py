# right: serialized in memory, written by os.write, renamed by Path.replace
import io

memory = io.BytesIO()
torch.save(snapshot, memory)
unfinished = path.parent / f".{path.name}.unfinished"
try:
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        rest = memory.getbuffer()
        while len(rest):
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    unfinished.replace(path)
finally:
    unfinished.unlink(missing_ok=True)
sync_folder(path.parent)
