"""The model, the text, and the training of one device that lessons 13 to 16 share."""

import json
import math
from importlib import import_module

import pytest
import torch

from common.byte_gpt import (
    MARK,
    ByteGPT,
    Sizes,
    batch_of_step,
    load_text,
    next_byte_loss,
    stdlib_files,
    unigram_entropy,
)
from common.cost.counting import block_parameters, model_parameters
from common.distributed import BadInput
from common.gpt_training import check_divides
from tests.scripts.trainings import (
    SRC,
    assert_same_bits,
    claimed,
    read,
    script,
    sentence,
)

write_on = import_module("13_train_gpt").write_on

pytestmark = pytest.mark.full

SMALL = Sizes(width=12, heads=3, blocks=2, context=9)
OPTIONS = {
    "--width": 12,
    "--heads": 3,
    "--blocks": 2,
    "--context": 9,
    "--batch-size": 4,
}
SMALL_OPTIONS = [word for pair in OPTIONS.items() for word in pair]


def model_of(sizes, seed=0):
    torch.manual_seed(seed)
    return ByteGPT(sizes).double()


# The model


def test_scores_depend_on_earlier_bytes_only():
    model = model_of(SMALL)
    tokens = torch.randint(256, (2, 9))
    changed = tokens.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 256
    before, after = model(tokens), model(changed)
    assert torch.equal(before[:, :5], after[:, :5])
    assert (before[:, 5:] != after[:, 5:]).any(dim=-1).all()


def test_layers_one_after_the_other_are_the_model():
    model = model_of(SMALL)
    tokens = torch.randint(256, (2, 9))
    x = tokens
    for layer in model.layers():
        x = layer(x)
    assert torch.equal(x, model(tokens))
    assert len(model.layers()) == SMALL.blocks + 2


def test_attention_equals_the_formula_of_the_paper():
    """softmax(q k' / sqrt(d)) v over the places so far, head by head."""
    attention = model_of(SMALL).blocks[0].attention
    x = torch.randn(2, 9, 12, dtype=torch.float64)
    gathered = torch.empty_like(x)
    for head in range(3):
        part = slice(4 * head, 4 * head + 4)
        q, k, v = (f(x)[..., part] for f in list(attention.children())[:3])
        scores = q @ k.transpose(1, 2) / math.sqrt(4)
        hidden = torch.ones(9, 9).triu(1).bool()
        gathered[..., part] = scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v
    torch.testing.assert_close(attention(x), attention.out(gathered))


@pytest.mark.parametrize("sizes", [Sizes(), SMALL, Sizes(48, 4, 3, 20)])
def test_parameters_are_as_many_as_the_formula_says(sizes):
    model = ByteGPT(sizes)
    assert sum(p.numel() for p in model.parameters()) == model_parameters(sizes)
    block = sum(p.numel() for p in model.blocks[0].parameters())
    assert block == block_parameters(sizes)


def test_loss_is_the_mean_of_minus_log_p():
    scores = torch.randn(2, 3, 256, dtype=torch.float64)
    targets = torch.randint(256, (2, 3))
    chances = scores.softmax(-1).gather(-1, targets[..., None])
    torch.testing.assert_close(next_byte_loss(scores, targets), -chances.log().mean())


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(BadInput, match=r"--width 10 .* --heads 3"):
        Sizes(width=10, heads=3)


def test_writing_on_keeps_the_start_and_looks_back_no_further_than_the_context():
    model = model_of(SMALL)
    text = write_on(model, 9, b"from the start", 20, seed=3)
    assert text.startswith(b"from the start") and len(text) == 34
    assert text == write_on(model, 9, b"from the start", 20, seed=3)
    assert text != write_on(model, 9, b"from the start", 20, seed=4)


# The text


def test_text_is_all_source_files_of_the_standard_library():
    files = stdlib_files()
    names = {path.name for path in files}
    assert {"ast.py", "threading.py"} <= names
    train, test = load_text()
    marks = len(MARK) * (len(files) - 2)
    assert len(train) + len(test) == sum(p.stat().st_size for p in files) + marks
    assert len(train) > 5 * len(test) > 100_000


def test_no_file_is_in_both_texts(tmp_path):
    for number in range(23):
        (tmp_path / f"m{number:02}.py").write_text(f"<{number:02}>")
    train, test = (bytes(text.tolist()).decode() for text in load_text(tmp_path))
    assert test == "<09>\n\n<19>"
    assert all((f"<{n:02}>" in train) != (n in (9, 19)) for n in range(23))


def test_python_without_sources_is_refused(tmp_path):
    with pytest.raises(BadInput, match="no source files"):
        load_text(tmp_path)


def test_targets_are_the_bytes_that_follow():
    text = torch.arange(200, dtype=torch.uint8)
    inputs, targets = batch_of_step(text, 4, 6, 15)
    assert inputs.shape == targets.shape == (6, 15)
    assert torch.equal(targets, inputs + 1)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])


def test_a_batch_depends_on_the_step_alone():
    text = torch.arange(200, dtype=torch.uint8)
    torch.manual_seed(1)
    first, _ = batch_of_step(text, 4, 6, 15)
    torch.manual_seed(2)
    again, _ = batch_of_step(text, 4, 6, 15)
    other, _ = batch_of_step(text, 5, 6, 15)
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_last_piece_reaches_the_end_of_the_text():
    text = torch.arange(17, dtype=torch.uint8)
    _, targets = batch_of_step(text, 0, 50, 15)
    assert {row[-1].item() for row in targets} == {15, 16}


def test_entropy_of_bytes():
    text = torch.tensor([1, 1, 1, 1, 2, 2, 3, 4], dtype=torch.uint8)
    assert math.isclose(unigram_entropy(text), 1.75 * math.log(2))


# The training


def metrics_of(folder, *arguments):
    done = script(folder, "13_train_gpt.py", *arguments, "--metrics", "m.json")
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "m.json").read_text()), done.stdout


def test_loss_falls_clearly_below_the_frequencies(tmp_path):
    numbers, shown = metrics_of(tmp_path, 80, "--sample", 40)
    assert numbers["losses"][0] > 5
    assert numbers["test_loss"] < numbers["unigram_entropy"] - 0.4
    assert "It writes:\ndef " in shown


@pytest.mark.parametrize("options", [[], SMALL_OPTIONS, ["--heads", 4, "--context", 7]])
def test_what_one_device_holds_is_what_the_formula_says(tmp_path, options):
    done = script(tmp_path, "13_cost.py", SRC / "13_train_gpt.py", 1, *options)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    table = lines[lines.index(next(x for x in lines if "measured" in x)) + 1 :][:4]
    for line in table:
        *_, measured, formula = line.split()
        assert measured == formula
        assert int(measured.replace(",", "")) > 0


def test_resumed_training_is_bit_equal(tmp_path):
    save = ["--save-every", 2, *SMALL_OPTIONS]
    whole, _ = metrics_of(tmp_path, 6, *save, "--snapshot", "whole.pt")
    first, _ = metrics_of(tmp_path, 4, *save)
    second, shown = metrics_of(tmp_path, 6, *save)
    assert "Resuming from 13_train_gpt.pt after 4 steps" in shown
    assert first["losses"] + second["losses"] == whole["losses"]
    assert_same_bits(read(tmp_path / "13_train_gpt.pt"), read(tmp_path / "whole.pt"))


def test_nothing_left_to_train_is_said(tmp_path):
    save = ["--save-every", 2, *SMALL_OPTIONS]
    metrics_of(tmp_path, 2, *save)
    numbers, shown = metrics_of(tmp_path, 2, *save)
    assert "Nothing to train: 2 steps are already run" in shown
    assert numbers["losses"] == [] and numbers["tokens_per_s"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["0"], "'0' is not a whole number above 0"),
        (["2", "--width", "10"], "--width 10 cannot be divided among --heads 12"),
        (["2", "--context", "99999999"], "--context 99999999 is more than"),
        (["2", "--metrics", "no/where.json"], "cannot write in the folder no"),
        (["2", "--save-every", "1", "--snapshot", "no/x.pt"], "in the folder no ("),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, arguments, words):
    assert words in sentence(script(tmp_path, "13_train_gpt.py", *arguments))


def test_snapshot_of_other_sizes_is_refused_and_kept(tmp_path):
    save = ["--save-every", 1]
    metrics_of(tmp_path, 1, *save, *SMALL_OPTIONS)
    before = (tmp_path / "13_train_gpt.pt").read_bytes()
    done = script(tmp_path, "13_train_gpt.py", 2, *save)
    assert "13_train_gpt.pt is a snapshot of another training" in sentence(done)
    assert (tmp_path / "13_train_gpt.pt").read_bytes() == before


@pytest.mark.parametrize("name", ["13_train_gpt.py", "15_fsdp.py"])
def test_second_run_into_one_snapshot_is_refused(tmp_path, name):
    own = name.replace(".py", ".pt")
    with claimed(tmp_path / own):
        said = sentence(script(tmp_path, name, 2, "--save-every", 1, *SMALL_OPTIONS))
    cure = "end that one, or choose another --snapshot"
    assert said == f"{name}: error: another run is saving to {own}: {cure}"
    assert not (tmp_path / own).exists()


# The cost programs


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["13_cost.py", "nowhere.py", 1], "nowhere.py cannot be counted here: name "),
        (["13_cost.py", SRC / "14_tensor_by_hand.py", 1], "13_pipeline.py"),
        (["13_timeline.py", SRC / "13_pipeline.py", 1], "13_pipeline_by_hand.py"),
        (["14_cost.py"], "the following arguments are required: program"),
        (["15_cost.py", SRC / "15_fsdp.py", 1, "--stage", 1], "15_fsdp.py: error: "),
        (["12_cost.py", SRC / "12_two_processes.py", 1, "--cut", 8], "--cut 8 leaves"),
    ],
)
def test_program_that_cannot_be_counted_is_one_sentence(tmp_path, command, words):
    assert words in sentence(script(tmp_path, *command))


# Words


def test_what_cannot_be_divided_is_told_with_what_can():
    check_divides(12, 3, "--heads", "ranks")
    with pytest.raises(BadInput, match=r"--heads 12 .* 5 ranks: choose 10 or 15"):
        check_divides(12, 5, "--heads", "ranks")
    with pytest.raises(BadInput, match=r"--heads 2 .* 5 ranks: choose 5$"):
        check_divides(2, 5, "--heads", "ranks")
