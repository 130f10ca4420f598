"""What a forge reads: workflows, forms, hooks, the changelog, the citation.

None of it has a logic of its own: it calls ``make`` and ``.ci/run``, as people do.
"""

import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools.fresh_copy import ROOT, tree_files

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = [
    path
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    if path.name != "config.yml"
]
CHECK_SCHEMA = Path(sys.executable).parent / "check-jsonschema"
A_COMMIT = re.compile(r"^[\w.-]+/[\w.-]+@[0-9a-f]{40}$")


def load(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def commands_of_workflow(path: Path) -> list[str]:
    steps = [step for job in load(path)["jobs"].values() for step in job["steps"]]
    return [step["run"] for step in steps if "run" in step]


def commands_of_gitlab() -> list[str]:
    jobs = load(ROOT / ".gitlab-ci.yml").values()
    scripts = [job["script"] for job in jobs if "script" in job]
    return [command for script in scripts for command in script]


def is_ours(command: str) -> bool:
    """Whether it's .ci/run, or make with a target of the Makefile, and nothing else."""
    if command == ".ci/run":
        return True
    target = re.fullmatch(r"make ([a-z]+)(?: [A-Z]+=\w+)*", command)
    return target is not None and target[1] in TARGETS


# workflows


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_calls_only_make_and_ci_run(path):
    commands = commands_of_workflow(path)
    assert commands
    assert [command for command in commands if not is_ours(command)] == []


def test_gitlab_calls_only_make_and_ci_run():
    commands = commands_of_gitlab()
    assert [command for command in commands if not is_ours(command)] == []


def test_both_services_run_the_same_three_commands():
    github = [command for path in WORKFLOWS for command in commands_of_workflow(path)]
    assert sorted(github) == sorted(commands_of_gitlab())
    assert set(github) == {"make lint", "make test", ".ci/run"}


@pytest.mark.parametrize(
    "command",
    ["make tets", "make test && echo", "pip install torch", "make -k test", "bash run"],
)
def test_command_with_a_logic_of_its_own_is_found(command):
    assert not is_ours(command)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_may_only_read_and_ends_when_a_newer_push_comes(path):
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["cancel-in-progress"] is True
    for name, job in workflow["jobs"].items():
        assert "timeout-minutes" in job, f"{path.name}: {name} may run for six hours"
        assert "permissions" not in job


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_to_a_commit_with_its_version_beside_it(path):
    uses = re.findall(r"uses: (\S+)(.*)$", path.read_text(encoding="utf-8"), re.M)
    assert uses
    for action, comment in uses:
        assert A_COMMIT.match(action), f"{path.name}: pin {action} to a commit"
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), f"{action}: which version?"


def test_every_action_is_used_in_one_version():
    texts = [path.read_text(encoding="utf-8") for path in WORKFLOWS]
    uses = {found for text in texts for found in re.findall(r"uses: (.*)$", text, re.M)}
    names = [use.split("@")[0] for use in uses]
    assert sorted(names) == sorted(set(names)), uses


def test_jobs_of_gitlab_end_in_time_and_when_a_newer_push_comes():
    settings = load(ROOT / ".gitlab-ci.yml")
    assert settings["default"]["interruptible"] is True
    assert settings["workflow"]["auto_cancel"]["on_new_commit"] == "interruptible"
    jobs = {name: job for name, job in settings.items() if "script" in job}
    assert [name for name, job in jobs.items() if "timeout" not in job] == []


def test_whole_history_is_there_where_commit_messages_are_checked():
    for path in WORKFLOWS:
        checks = {"make lint", ".ci/run"} & set(commands_of_workflow(path))
        whole = "fetch-depth: 0" in path.read_text(encoding="utf-8")
        assert whole == bool(checks), path.name
    for name, job in load(ROOT / ".gitlab-ci.yml").items():
        if "script" in job:
            whole = job.get("variables", {}).get("GIT_DEPTH") == "0"
            assert whole == (job["script"] != ["make test"]), name


# schemas

SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "custom.github-workflows-require-timeout": WORKFLOWS,
    "vendor.github-issue-forms": FORMS,
    "vendor.github-issue-config": [ROOT / ".github/ISSUE_TEMPLATE/config.yml"],
    "vendor.gitlab-ci": [ROOT / ".gitlab-ci.yml"],
    "vendor.citation-file-format": [ROOT / "CITATION.cff"],
}


def complaints(schema: str, *paths: Path) -> str:
    """What the schema says against these files; "" if nothing."""
    words = [CHECK_SCHEMA, "--builtin-schema", schema, *paths]
    if schema == "vendor.gitlab-ci":
        words += ["--data-transform", "gitlab-ci"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    return done.stdout + done.stderr


@pytest.mark.skipif(not CHECK_SCHEMA.exists(), reason="make env brings the schemas")
@pytest.mark.parametrize("schema", SCHEMAS)
def test_file_has_the_form_that_its_reader_wants(schema):
    assert SCHEMAS[schema]
    assert complaints(schema, *SCHEMAS[schema]) == ""


@pytest.mark.skipif(not CHECK_SCHEMA.exists(), reason="make env brings the schemas")
@pytest.mark.parametrize("schema", SCHEMAS)
def test_schema_finds_a_broken_file(schema, tmp_path):
    broken = tmp_path / "broken.yml"
    broken.write_text("jobs: {lint: {runs-ons: here, script: 1}}\nbody: 3\n")
    assert "broken.yml" in complaints(schema, broken)


def test_make_lint_checks_every_one_of_these_files():
    shown = make_lint()
    for path in (path for paths in SCHEMAS.values() for path in paths):
        name = str(path.relative_to(ROOT))
        lines = [line for line in shown if "check-jsonschema" in line]
        assert any(name in line.split() for line in lines), f"make lint misses {name}"


# issue forms


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_form_asks_for_what_explains_a_failure(path):
    text = path.read_text(encoding="utf-8")
    assert "`workshop doctor`" in text
    assert "`workshop check NAME -v`" in text


def test_each_form_requires_something():
    assert len(FORMS) == 3
    for path in FORMS:
        fields = load(path)["body"]
        assert any(field.get("validations", {}).get("required") for field in fields)


# pre-commit

PRE_COMMIT = load(ROOT / ".pre-commit-config.yaml")
HOOKS = PRE_COMMIT["repos"][0]["hooks"]
LINTING = [hook for hook in HOOKS if "commit-msg" not in hook.get("stages", [])]
# It takes seconds, and looks at other commits or all programs.
ONLY_IN_MAKE = ("pytest", "commit_message.py", "pre-commit validate-config")


@functools.cache
def make_lint() -> list[str]:
    """The command lines of `make lint`."""
    done = subprocess.run(
        ["make", "-n", "lint"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def arguments_in_make(hook: dict) -> list[str] | None:
    """What `make lint` adds to the hook's command; None if it doesn't run it."""
    words = hook["entry"].split()
    for line in make_lint():
        if line.split()[: len(words)] == words:
            return line.split()[len(words) :]
    return None


def files_of(hook: dict) -> set[str]:
    """The files of the repository that the hook looks at."""
    wanted = re.compile(hook["files"])
    unwanted = re.compile(hook.get("exclude", "^$"))
    return {
        name
        for name in tree_files()
        if wanted.search(name) and not unwanted.search(name)
    }


def test_hooks_need_no_versions_of_their_own():
    """They're the programs in .venv, so constraints.txt alone has the versions."""
    assert [repository["repo"] for repository in PRE_COMMIT["repos"]] == ["local"]
    assert {hook["language"] for hook in HOOKS} == {"system"}
    assert all(hook["entry"].startswith(".venv/bin/") for hook in HOOKS)


def test_one_installation_brings_both_hooks_and_each_runs_once():
    assert PRE_COMMIT["default_install_hook_types"] == ["pre-commit", "commit-msg"]
    assert PRE_COMMIT["default_stages"] == ["pre-commit"]


@pytest.mark.parametrize("hook", LINTING, ids=lambda hook: hook["id"])
def test_hook_does_what_make_lint_does(hook):
    added = arguments_in_make(hook)
    assert added is not None, f"make lint doesn't run {hook['entry']}"
    if hook.get("pass_filenames", True):
        assert set(added) == files_of(hook)
    else:
        assert added == []


def test_what_make_lint_does_has_a_hook():
    entries = [hook["entry"] for hook in LINTING]
    for line in make_lint():
        ours = line.startswith(".venv/bin/") and "tools/environment.py" not in line
        if ours and not line.startswith(".venv/bin/python -c"):
            hooked = any(line.startswith(entry) for entry in entries)
            assert hooked or any(name in line for name in ONLY_IN_MAKE), line


def test_hooks_programs_exist():
    for hook in HOOKS:
        for name in re.findall(r"tools/\w+\.py", hook["entry"]):
            assert (ROOT / name).exists(), name
    (message,) = [hook for hook in HOOKS if hook.get("stages") == ["commit-msg"]]
    assert message["entry"].endswith(" tools/commit_message.py")


def test_message_hook_and_make_lint_use_one_program():
    (line,) = [line for line in make_lint() if "tools/commit_message.py" in line]
    assert line.endswith(" tools/commit_message.py --range origin/main..HEAD")


# releases

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
RELEASE = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", re.MULTILINE)


def test_newest_release_of_the_changelog_is_the_packages_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version, _date = RELEASE.findall(CHANGELOG)[0]
    assert version == project["project"]["version"], "see Release a version"


def test_citation_names_the_newest_release_and_its_date():
    citation = load(ROOT / "CITATION.cff")
    found = (citation["version"], str(citation["date-released"]))
    assert found == RELEASE.findall(CHANGELOG)[0]


def test_citation_names_the_holders_of_the_copyright():
    license_text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    holders = re.search(r"^Copyright \(c\) \d+ (.*)$", license_text, re.MULTILINE)
    (author,) = load(ROOT / "CITATION.cff")["authors"]
    assert author["name"] == holders[1]
    assert license_text.startswith(f"{load(ROOT / 'CITATION.cff')['license']} License")


def test_changelog_begins_with_what_is_unreleased_and_is_newest_first():
    headings = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    releases = RELEASE.findall(CHANGELOG)
    assert len(releases) == len(headings) - 1, headings
    dates = [date for _version, date in releases]
    assert dates == sorted(dates, reverse=True)


def test_security_names_files_and_commands_that_exist():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for name in re.findall(r"`((?:tests|workshop)/[\w/]+\.py)`", text):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"`(test_\w+\.py)`", text):
        assert (ROOT / "tests" / "grader" / name).exists(), name


def test_security_states_the_limits_of_the_grader():
    from workshop.grader.checks import DEFAULT_LIMIT
    from workshop.grader.engine import engine

    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert f"gets {engine.MEMORY_BYTES / 1e9:g} GB" in text
    assert f"at {engine.OUTPUT_BYTES / 1e6:g} MB of output" in text
    assert f"beyond {engine.FILE_BYTES / 1e6:g} MB" in text
    assert f"{DEFAULT_LIMIT:g} seconds per check" in text
