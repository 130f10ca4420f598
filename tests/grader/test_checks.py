"""Which runs a file of checks asks for, and what is said of one that is not right."""

import pytest

from workshop.errors import UserError
from workshop.grader.checks import checks_in

IMPORT = "import pytest\n"
CHECK = "@pytest.mark.ranks({})\ndef test_{}():\n    pass\n"


def runs(tmp_path, text, **options):
    """(function, world size, seed) of each run."""
    file = tmp_path / "test_exercise.py"
    file.write_text(IMPORT + text)
    return [(c.function, c.world_size, c.seed) for c in checks_in(file, **options)]


def test_each_function_runs_once_before_any_runs_again(tmp_path):
    """A wrong answer is found by the first check that can find it, not by the tenth."""
    text = CHECK.format("2, 3, 4", "a") + CHECK.format("1", "b")
    assert runs(tmp_path, text) == [
        ("test_a", 2, 1),
        ("test_b", 1, 1),
        ("test_a", 3, 2),
        ("test_b", 1, 2),
        ("test_a", 4, 1),
    ]


def test_one_seed_runs_each_world_size_once(tmp_path):
    text = CHECK.format("2, 3", "a") + CHECK.format("1", "b")
    expected = [("test_a", 2, 7), ("test_b", 1, 7), ("test_a", 3, 7)]
    assert runs(tmp_path, text, seeds=(7,)) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def test_a(:", "cannot read the checks"),
        ("def helper(): pass", "no function that begins with test_"),
        ("def test_a(): pass", "line 2: test_a needs @pytest.mark.ranks"),
        (CHECK.format("", "a"), "takes positive numbers"),
        (CHECK.format("0", "a"), "takes positive numbers"),
        (CHECK.format("n", "a"), "takes only literals"),
        (CHECK.format("2, limits=3", "a"), "has no option {'limits'}"),
    ],
)
def test_file_that_is_not_right_is_one_sentence(tmp_path, text, words):
    with pytest.raises(UserError, match=words) as raised:
        runs(tmp_path, text)
    assert "\n" not in str(raised.value)


def test_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match="there are no checks"):
        checks_in(tmp_path / "test_nothing.py")
