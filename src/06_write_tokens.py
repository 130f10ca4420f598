"""Write the text that 13_train_gpt.py trains on as token files with an index.

    python src/06_write_tokens.py tokens
    python src/06_write_tokens.py tokens --tokens-per-file 100000

A token is a byte. A document is a top-level definition of a module, and ends with the
token END. The folder then has, for each shard, all tokens of its documents one after
the other (uint16), and where each document starts (int64); index.json says how many.
"""

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from common.byte_gpt import BYTES, TEST_EVERY, stdlib_files
from common.distributed import BadInput, Parser, log, one_line_errors, positive_int

SEED = 0
END = BYTES  # the token after a document: one more than the largest byte
BETWEEN_DEFINITIONS = b"\n\n\n"  # two empty lines
TOKEN, START = np.dtype("<u2"), np.dtype("<i8")  # of 2 and 8 bytes, on any machine


def documents() -> Iterator[bytes]:
    """The top-level definitions of the modules that 13_train_gpt.py trains on."""
    for number, path in enumerate(stdlib_files()):
        if number % TEST_EVERY == TEST_EVERY - 1:
            continue  # kept for the test
        for part in path.read_bytes().split(BETWEEN_DEFINITIONS):
            if part.strip():
                yield part


# [start write]
def encode(document: bytes) -> np.ndarray:
    """The tokens of a document, and END: [its bytes + 1]."""
    tokens = np.empty(len(document) + 1, dtype=TOKEN)
    tokens[:-1] = np.frombuffer(document, dtype=np.uint8)
    tokens[-1] = END
    return tokens


def write_shard(folder: Path, name: str, parts: list[np.ndarray]) -> dict:
    """Write the documents of a shard; returns its entry in the index."""
    lengths = [len(part) for part in parts]
    starts = np.cumsum([0, *lengths], dtype=START)  # the last one is the whole length
    np.concatenate(parts).tofile(folder / f"{name}.tokens")
    starts.tofile(folder / f"{name}.starts")
    return {"name": name, "tokens": int(starts[-1]), "documents": len(parts)}


# [end write]
def write_all(folder: Path, tokens_per_file: int) -> list[dict]:
    """Write all documents, in an order drawn once; returns the index."""
    everything = [encode(document) for document in documents()]
    random.Random(SEED).shuffle(everything)  # neighbors come from other modules
    (folder / "index.json").unlink(missing_ok=True)
    index: list[dict] = []
    waiting: list[np.ndarray] = []
    length = 0
    for tokens in everything:
        waiting.append(tokens)
        length += len(tokens)
        if length >= tokens_per_file:
            index.append(write_shard(folder, f"shard_{len(index):03}", waiting))
            waiting, length = [], 0
    if waiting:
        index.append(write_shard(folder, f"shard_{len(index):03}", waiting))
    # last: a folder without it was not written to the end
    (folder / "index.json").write_text(json.dumps(index, indent=1) + "\n")
    return index


def packing_row(folder: Path, index: list[dict], context: int) -> str:
    """What rows of ``context`` tokens hold, with a row per document and packed."""
    alone_padding = alone_cut = alone_rows = 0
    packed_padding = packed_rows = tokens = within = pairs = 0
    for shard in index:
        starts = np.fromfile(folder / f"{shard['name']}.starts", dtype=START)
        lengths = np.diff(starts)
        alone_rows += len(lengths)
        alone_padding += int(np.maximum(context - lengths, 0).sum())
        alone_cut += int(np.maximum(lengths - context, 0).sum())
        rows = -(-shard["tokens"] // context)
        packed_rows += rows
        packed_padding += rows * context - shard["tokens"]
        tokens += shard["tokens"]
        row_starts = np.arange(0, shard["tokens"], context)
        pieces = np.diff(np.union1d(starts, row_starts))  # of documents, inside rows
        row_lengths = np.diff([*row_starts, shard["tokens"]])
        within += int((pieces * (pieces + 1) // 2).sum())
        pairs += int((row_lengths * (row_lengths + 1) // 2).sum())
    shares = [
        alone_padding / (alone_rows * context),
        alone_cut / tokens,
        packed_padding / (packed_rows * context),
        1 - within / pairs,
    ]
    return f"{context:6,}" + "".join(f"{share:13.1%}" for share in shares)


def parse_arguments() -> argparse.Namespace:
    parser = Parser(__doc__)
    folder = "to write to; it is created"
    parser.add_argument("folder", metavar="FOLDER", type=Path, help=folder)
    size = "begin a new file after so many (default: %(default)s)"
    parser.add_argument(
        "--tokens-per-file", type=positive_int, default=500_000, help=size
    )
    return parser.parse_args()


@one_line_errors
def main() -> None:
    args = parse_arguments()
    try:
        args.folder.mkdir(parents=True, exist_ok=True)
        index = write_all(args.folder, args.tokens_per_file)
    except OSError as error:
        cure = "choose a folder that you can write to"
        raise BadInput(
            f"cannot write {args.folder}: {error.strerror}: {cure}"
        ) from None
    tokens = sum(shard["tokens"] for shard in index)
    count = sum(shard["documents"] for shard in index)
    log(f"{count:,} documents, {tokens:,} tokens in {len(index)} files")
    log("        a row per document        packed")
    log("   row      padding      cut off      padding  other's pairs")
    for context in (256, 1024, 4096):
        log(packing_row(args.folder, index, context))


if __name__ == "__main__":
    main()
