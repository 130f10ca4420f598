"""docs/_ext/sources.py: links to a page's files and its text, and when it changed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import sources  # noqa: E402

PAGE = """
A page
======

Run ``src/train.py``, not ``src/no_such_file.py``, nor ``python src/train.py``.
Watch it with ``src/instruments/18_cost.py``.

.. literalinclude:: src/train.py
   :caption: src/train.py
"""
CONF = """
import sys
sys.path.insert(0, {extensions!r})
extensions = ["sources"]
html_theme = "sphinx_rtd_theme"
repository = {repository!r}
templates_path = [{templates!r}]
def setup(app):
    app.add_config_value("repository", "", "env", [str])
"""


@pytest.mark.parametrize(
    "repository",
    [
        "https://github.com/a/b",
        "https://github.com/a/b.git",
        "git@github.com:a/b.git",
        "ssh://git@github.com/a/b.git",
    ],
)
def test_every_form_of_an_address_leads_to_the_same_pages(repository, monkeypatch):
    monkeypatch.delenv("READTHEDOCS_GIT_IDENTIFIER", raising=False)
    there = sources.address_of(repository, "edit", "docs/x.rst")
    assert there == "https://github.com/a/b/edit/main/docs/x.rst"


def test_branch_is_the_one_that_is_built_and_gitlab_has_its_own_form(monkeypatch):
    monkeypatch.setenv("READTHEDOCS_GIT_IDENTIFIER", "v2")
    there = sources.address_of("https://gitlab.com/a/b.git", "blob", "src/x.py")
    assert there == "https://gitlab.com/a/b/-/blob/v2/src/x.py"


def git(folder, *words, day="2026-01-02"):
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    when = {"GIT_COMMITTER_DATE": f"{day}T12:00:00Z", "PATH": "/usr/bin:/bin"}
    command = ["git", *who, "-C", str(folder), *words]
    subprocess.run(command, check=True, env=when, capture_output=True)


def test_day_is_that_of_the_last_commit_that_changed_the_page(tmp_path):
    git(tmp_path, "init", "-q")
    for name, day in (("a.rst", "2026-01-02"), ("b.rst", "2026-01-03")):
        (tmp_path / name).write_text(name)
        git(tmp_path, "add", name)
        git(tmp_path, "commit", "-q", "-m", name, day=day)
    (tmp_path / "a.rst").write_text("more")
    git(tmp_path, "commit", "-qam", "more", day="2026-01-04")
    assert sources.days_of_change(tmp_path) == {
        "a.rst": "2026-01-04",
        "b.rst": "2026-01-03",
    }


def test_no_day_is_said_where_git_cannot_know_it(tmp_path):
    assert sources.days_of_change(tmp_path) == {}  # no repository
    git(tmp_path, "init", "-q", "whole")
    (tmp_path / "whole" / "a.rst").write_text("a")
    git(tmp_path / "whole", "add", "a.rst")
    for message in "one", "two":
        git(tmp_path / "whole", "commit", "-q", "--allow-empty", "-m", message)
    address = f"file://{tmp_path}/whole"
    git(tmp_path, "clone", "-q", "--depth=1", address, str(tmp_path / "shallow"))
    assert sources.days_of_change(tmp_path / "shallow") == {}


def built(folder, repository: str) -> str:
    """The page as HTML."""
    (folder / "src" / "instruments").mkdir(parents=True)
    (folder / "src" / "instruments" / "18_cost.py").write_text("pass\n")
    (folder / "src" / "train.py").write_text("pass\n")
    (folder / "index.rst").write_text(PAGE)
    conf = CONF.format(
        extensions=str(ROOT / "docs" / "_ext"),
        templates=str(ROOT / "docs" / "_templates"),
        repository=repository,
    )
    (folder / "conf.py").write_text(conf)
    words = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html"]
    subprocess.run([*words, str(folder), str(folder / "out")], check=True)
    return (folder / "out" / "index.html").read_text(encoding="utf-8")


def test_names_of_files_lead_to_them_and_the_page_to_its_text(tmp_path):
    page = built(tmp_path / "site", "https://github.com/a/b")
    found = re.findall(r'href="https://github.com/a/b/([^"]+)"', page)
    assert sorted(found) == [
        "blob/main/src/instruments/18_cost.py",
        "blob/main/src/train.py",
        "blob/main/src/train.py",
        "edit/main/index.rst",
    ]


def test_page_has_no_such_links_where_the_address_is_not_known(tmp_path):
    page = built(tmp_path / "site", "")
    assert "github.com/a/b" not in page and "Suggest a change" not in page
