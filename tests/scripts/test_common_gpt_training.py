"""The configuration that programs which train the byte GPT share."""

import sys
from dataclasses import FrozenInstanceError, dataclass, fields

import pytest

from common import gpt_training


@dataclass(frozen=True)
class Config(gpt_training.SaveOptions, gpt_training.TextConfig):
    stage: int
    mixed_precision: bool


def add_options(parser):
    parser.add_argument("--stage", type=int, default=3)
    parser.add_argument("--mixed-precision", action="store_true")


@pytest.fixture
def read(monkeypatch):
    """Reads a command line."""

    def parse(*arguments):
        monkeypatch.setattr(sys, "argv", ["train.py", *arguments])
        options = gpt_training.add_save_options, add_options
        return gpt_training.parse_text_training("", Config, *options)

    return parse


def test_a_program_gets_its_own_configuration_and_cannot_change_it(read):
    config = read("40", "--batch-size", "6", "--save-every", "20")
    assert (config.steps, config.batch_size, config.save_every) == (40, 6, 20)
    assert str(config.snapshot) == "train.pt"
    with pytest.raises(FrozenInstanceError):
        config.steps = 41


def test_the_fields_of_all_programs_come_first():
    names = [field.name for field in fields(Config)]
    assert names[0] == "steps"
    assert names[-2:] == ["stage", "mixed_precision"]


def test_a_configuration_is_shown_in_one_line_without_what_is_not_asked_for(
    read, capsys
):
    gpt_training.show_config(read("40", "--stage", "0"))
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("Config: steps 40, batch_size 16, learning_rate 0.003, ")
    assert line.endswith("snapshot train.pt, stage 0")
    assert "None" not in line and "mixed_precision" not in line
