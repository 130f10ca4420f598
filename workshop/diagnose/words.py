"""One line, or a few words: which known failures they may mean.

``workshop diagnose --words``, the search of lesson 19 and the site's search answer
alike: ``docs/_static/js/known-lines.js`` does what this file does, with the same data,
which ``knowledge()`` gives it. A test holds their answers side by side.

A message of the base counts most. Without one, words decide: a rare word counts more
than a common one, and a line of a program must share most of its weight with a card.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from workshop.common_mistakes import load_mistakes, plain
from workshop.diagnose.causes import CARD, GALLERY, ROW

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

MOST = 8  # cards of an answer
SURE, OWN, MAYBE, LESSON, HINT = 1100, 1000, 500, 400, 300  # points of a message
CERTAIN = 900  # fewer points: the message has other causes, too
LEAST_SHARE = 0.5  # of the words that a reader writes
LEAST_WEIGHT = 0.5  # of a line that a program printed: of its words' worth
LEAST_WORTH = 9.5  # of them: two rare words, or three of the common ones
UNKNOWN = 1.0  # what a word is worth that no card has
OF_CURE = 0.6  # a word of the cure alone counts less than one of the failure
LATER_CARD = 0.9  # a row of a lesson stands below a card that has the same words
LONGEST = 150  # characters of a line in a title

# Lines that every failure may end with, and what to look for instead.
CONSEQUENCES = (
    (
        r"^(?!.*SIGABRT).*Connection (closed|reset) by (remote )?peer|[Bb]roken pipe|"
        r"SIGTERM|\bEPIPE\b|ECONNRESET|pipe closed|"
        r"Socket Timeout|unexpectedly disconnected|has been shut down|got 0 bytes|"
        r"encountered error when \w+ing .{0,80}: (eof|EOF)\b|"
        r"Rendezvous(Closed|GracefulExit)Error|failed to send a keep-alive|"
        r"communicator (was|is) aborted|remote process exited|retcode 6|"
        r"taking the entire process down|operations have failed or timed out|"
        r"dump signal|Job step aborted|Timed out waiting for job step|"
        r"failed to (shutdown|close) the rendezvous|HorovodInternalError|"
        r"waiting on exit barrier",
        "That only says that another rank has left. Find the one that failed first.",
    ),
    (
        r"ChildFailedError|ProcessExited|Caught \w+ in DataLoader|exited unexpectedly|"
        r"terminated with the following|returned non-zero|a non-zero exit|worker died|"
        r"ActorDiedError|actor died|WorkerCrashedError|RayTaskError|"
        r"TrainingFailedError|CheckpointException|exited with non-zero|"
        r"Worker exit type: SYSTEM_ERROR|MPI_ABORT was invoked|"
        r"BAD TERMINATION OF ONE|Killing subprocess|exit ?code *:? *[1-9]|"
        r"restarting failed container|CrashLoopBackOff|"
        r"Local abort before MPI_INIT|bad command exit code|failed to run torchrun|"
        r"Error executing job with overrides|(Container|Pod) failed\b|"
        r"receive shutdown event|"
        r"[Ss]ee (the )?(root cause|stack trace|traceback)\b|fatal signal from worker|"
        r"(previous|other|above) (error|exception|log)s?\b|[Cc]heck rank \d+ logs|"
        r"\b([Ww]orker|[Pp]rocess(es)?|[Rr]ank|[Cc]hild|[Aa]ctor|[Ss]ubprocess)\b"
        r".{0,60}\b(died|failed|exited|crashed|no longer alive)\b(?!, but)",
        "That only says that a process has failed. Find that process's own error.",
    ),
    (
        r"\b(IndexError|NameError|UnboundLocalError|SyntaxError|IndentationError|"
        r"ZeroDivisionError|RecursionError): ",
        "An error of the program itself. Its traceback's last line of your own code "
        "shows where.",
    ),
)
# What healthy runs print, too.
NOISE = (
    r"\[W\d* (?!tensorpipe_agent)|\[W (socket|TCPStore|Process)|(^|: )W\d{4} |"
    r"NCCL INFO |\[NeMo I |NCCL WARN (Failed to open libibverbs|NET\/Plugin|Missing |"
    r"NET\/OFI Only \w+ provider|"
    r"Could not find a path for pattern)|Warning: |OMP_NUM_THREADS|"
    r"Invalidate trace cache|OVERFLOW! .*[Ss]kipping step|retrying|"
    r"Gradient overflow\. +Skipping step|expected to happen during shutdown|"
    r"Unable to find hostfile, will proceed|"
    r"destroy_process_group\(\) was not called|"
    r"operation involving a call to the|.fork\(\). system call to create|"
    r"error initializing an OpenFabrics device|Unable to register cu\w+ factory"
)
ALWAYS_NOISE = (
    r"NCCL INFO |"
    r"\[W.*\[c10d\] The client socket has failed to connect to \[|"
    r"\[W.*poolFD failed with|"
    r"=> no checkpoint found|[Nn]o existing checkpoint found|Cannot use FA version \d|"
    r"please install the libaio-dev package|from LD_PRELOAD cannot be preloaded"
)
# What a program prints about an error, rather than what a reader writes.
REPORTED = (
    r"(Error|Exception)\b|error:|\bERROR\b|\bfatal\b|failed|WARN |\[E\d|[Cc]annot |"
    r"error occurred|core dumped|[Kk]illed|\b[a-z_]\w*\.[A-Z]\w+: |"
    r"No such file|\bexceed(s|ed)\b|\(\d+\)|\b(INFO|WARNING|CRITICAL)\b|\bassert "
)
HEALTHY = "Healthy runs print this line, too."
# What launchers and loggers write before a line, and the class of an error: no words.
BEFORE = (
    r"^(?:\[?\d{4}[-/]\d\d[-/]\d\d[T _][\d:.,]+Z?\]?[:,]? *|\[\w* ?\d+\]:? *|"
    r"\(\w[\w ]*pid=\d+[^)]*\) *|\[[^\]]*\.(?:cpp|cc|cu|py):\d+\]:? *|"
    r"[\w.-]+:\d+:\d+ \[\d+\] *|\[[^\]]+:\d+(?::\d+)?\]:? *|"
    r"\[\d+,\d+\]<std\w+>: *|\d+: *|(?:\d{1,3}\.){3}\d{1,3}: *|"
    r"[a-z][\w.-]*-?\d+: +|\[?(?:ERROR|WARNING|INFO|CRITICAL|FATAL)\b\]?[: -]*|"
    r"(?:Runtime|Value|Assertion|Type|Attribute|Import|OS)Error: *)+"
)
NEAR = "No failure here has this line."
NO_LINE = "No failure here has this line. workshop diagnose LOG reads all lines."
NO_WORDS = "No failure here has these words. Try other words."
# What says nothing: paths of sources, addresses in memory, words of every sentence.
PATHS = r"[\w.~-]*\/[\w.\/~-]*\.\w+"
ADDRESSES = r"\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{12,}\b"
CAMEL = r"([a-z])([A-Z])|([A-Z])([A-Z][a-z])"
WORD = r"[a-z][a-z0-9]{2,}"
NUMBER = r"\d{3}"  # a word with one is somebody's name
# The forms of one word.
FORMS = r"^(.{4,}?)(?:ations?|ings?|ed|es|e)$|^(.{3,}[^s])s$"
DULL = (
    "and appear are but can does error expected false for from got has its must not "
    "object please see taken the this that true type use used using was when with "
    "without you your"
)
# What isn't text in a regular expression.
EXPRESSION = (
    r"\(\?<?[!=][^()]*\)",  # what must be or mustn't be beside it
    r"\\[a-zA-Z]|\{\d*,?\d*\}|\[[^\]]*\]",
    r"\(\?:|[()|?*+^$.\\]",
)
# Different words of speakers for one thing.
SAME = {
    "oom": "memory",
    "hung": "hangs",
    "stuck": "hangs",
    "freezes": "hangs",
    "frozen": "hangs",
    "deadlock": "hangs",
    "timeout": "timed",
    "slower": "slow",
    "gpus": "gpu",
    "crashed": "crashes",
}


@dataclass(frozen=True)
class Place:
    """What the search leads to: a card, a row of lesson 19, or a row of a lesson."""

    id: str
    page: str
    title: str
    group: str
    cure: str
    text: str  # what else is said of the failure
    messages: tuple[str, ...] = ()
    points: int = OWN  # of the first message
    scale: float = 1.0  # of its words

    @property
    def name(self) -> str:
        """As the base calls it."""
        return re.sub("^(?:failure|cause)-", "", self.id).replace("-", "_")

    @property
    def address(self) -> str:
        return f"{self.page}#{self.id}"


@dataclass(frozen=True)
class Rule:
    """A cause as the search uses it; ``ids`` are the cards that show it."""

    name: str
    ids: tuple[str, ...]
    sure: tuple[str, ...]
    maybe: tuple[str, ...]
    unless: str
    explains: tuple[str, ...]
    weight: int


@dataclass(frozen=True)
class Answer:
    """The cards, best first, and a sentence."""

    cards: tuple[Place, ...]
    says: str


def read(path: Path, key: str) -> list[dict]:
    if not path.is_file():
        return []
    return tomllib.loads(path.read_text(encoding="utf-8"))[key]


@cache
def cards(root: Path) -> tuple[Place, ...]:
    """All cards, all rows of lesson 19, all rows of the lessons."""
    causes = read(Path(__file__).parent / "causes.toml", "cause")
    page = CARD.partition("#")[0]
    shown = {c["gallery"][0]: terms(c) for c in causes if c.get("gallery")}
    return (
        *(
            from_gallery(entry, page, shown.get(entry["name"], []))
            for entry in read(root / GALLERY, "failure")
        ),
        *(from_cause(cause, page) for cause in causes if "group" in cause),
        *(from_lesson(mistake) for mistake in load_mistakes()),
    )


def from_gallery(entry: dict, page: str, more: list[str]) -> Place:
    told = [entry[key] for key in ("symptom", "title", "question", "tool")]
    said = [literal(message) for message in entry.get("messages", [])]
    text = [entry["name"], *told, *said, *more]
    return Place(
        f"failure-{entry['name'].replace('_', '-')}",
        page,
        entry["title"],
        entry["symptom"],
        entry["cure"],
        " ".join(text),
        tuple(entry.get("messages", [])),
    )


def from_cause(cause: dict, page: str) -> Place:
    line = cause["lines"][0]
    if len(line) > LONGEST:
        line = f"{line[:LONGEST]} ..."
    return Place(
        row_id(cause),
        page,
        line,
        cause["group"],
        f"{cause['title']}. {cause['cure']}",
        " ".join([cause["title"], *cause["lines"], *terms(cause)]),
    )


def terms(cause: dict) -> list[str]:
    """What else the failure is called, and what its expressions say."""
    messages = [*cause.get("messages", []), *cause.get("maybe", [])]
    return [cause.get("words", ""), *map(literal, messages)]


def literal(expression: str) -> str:
    """The words of a regular expression."""
    for pattern in EXPRESSION:
        expression = re.sub(pattern, " ", expression)
    return expression


def from_lesson(mistake) -> Place:
    cells = [plain(text) for text in (mistake.symptom, mistake.cause, mistake.cure)]
    points = {3: OWN, 2: LESSON, 1: HINT - 50}[mistake.weight]
    return Place(
        mistake.row,
        mistake.address.partition("#")[0],
        cells[0],
        f"lesson {mistake.lesson}",
        f"{cells[1]}: {cells[2]}",
        " ".join(cells[:2]),
        mistake.messages,
        points,
        LATER_CARD,
    )


def row_id(cause: dict) -> str:
    return ROW.partition("#")[2] + cause["name"].replace("_", "-")


@cache
def rules() -> tuple[Rule, ...]:
    """The causes that have messages."""
    found = []
    for cause in read(Path(__file__).parent / "causes.toml", "cause"):
        messages, maybe = cause.get("messages", []), cause.get("maybe", [])
        if not messages and not maybe:
            continue
        weight = cause.get("weight", 3)
        cards = [f"failure-{n.replace('_', '-')}" for n in cause.get("gallery", [])]
        if weight == 1:  # a hint only
            messages, maybe = [], [*maybe, *messages]
        found.append(
            Rule(
                cause["name"],
                tuple(cards or [row_id(cause)]),
                tuple(messages),
                tuple(maybe),
                cause.get("unless", ""),
                tuple(cause.get("explains", [])),
                weight,
            )
        )
    return tuple(found)


def without_usual_end(one: Place) -> list:
    """Messages, points and scale; the last ones are left out where most cards agree."""
    end = [one.messages, one.points, one.scale]
    usual = [(), OWN, 1]
    while end and end[-1] == usual[-1]:
        end.pop()
        usual.pop()
    return end


def knowledge(root: Path) -> dict:
    """All of it for known-lines.js.

    What many of them share is written once, and they have its number: pages and groups
    of places, places of rules.
    """
    found = cards(root)
    pages = sorted({one.page for one in found})
    groups = sorted({one.group for one in found})
    number = {one.id: index for index, one in enumerate(found)}
    return {
        "pages": pages,
        "groups": groups,
        "places": [
            [
                *(one.id, pages.index(one.page), one.title, groups.index(one.group)),
                *(one.cure, " ".join(more_words(one))),
                *without_usual_end(one),
            ]
            for one in found
        ],
        "usual": OWN,
        "rules": [
            [
                *(one.name, [number[id] for id in one.ids], one.sure, one.maybe),
                *(one.unless, one.explains, one.weight),
            ]
            for one in rules()
        ],
        "consequences": CONSEQUENCES,
        "noise": NOISE,
        "alwaysNoise": ALWAYS_NOISE,
        "reported": REPORTED,
        "healthy": HEALTHY,
        "near": NEAR,
        "noLine": NO_LINE,
        "noWords": NO_WORDS,
        "paths": PATHS,
        "addresses": ADDRESSES,
        "camel": CAMEL,
        "word": WORD,
        "number": NUMBER,
        "forms": FORMS,
        "before": BEFORE,
        "dull": DULL.split(),
        "same": SAME,
        "most": MOST,
        "sure": SURE,
        "maybe": MAYBE,
        "hint": HINT,
        "certain": CERTAIN,
        "leastShare": LEAST_SHARE,
        "leastWeight": LEAST_WEIGHT,
        "leastWorth": LEAST_WORTH,
        "unknown": UNKNOWN,
        "ofCure": OF_CURE,
    }


def more_words(place: Place) -> list[str]:
    """Those of its text that its title hasn't."""
    told = set(words(place.title))
    return [word for word in words(place.text) if word not in told]


def words(text: str) -> list[str]:
    """The words that say something, each of them once, in order."""
    text = re.sub(BEFORE, "", text)
    text = re.sub(PATHS, " ", text)
    text = re.sub(ADDRESSES, " ", text)
    text = re.sub(CAMEL, r"\1\3 \2\4", text).replace("_", " ").lower()
    found: list[str] = re.findall(WORD, text, re.ASCII)
    said = [SAME.get(word, word) for word in found if not re.search(NUMBER, word)]
    dull = set(DULL.split())
    return list(dict.fromkeys(stem(word) for word in said if word not in dull))


def stem(word: str) -> str:
    """What the forms of a word have in common."""
    match = re.search(FORMS, word)
    if match is None:
        return word
    return match[1] or match[2]


@dataclass(frozen=True)
class Vocabulary:
    """The words of a place: of the failure, of its title, and of its cure alone."""

    failure: frozenset[str]
    title: tuple[str, ...]
    cure: frozenset[str]


@cache
def vocabularies(root: Path) -> tuple[Vocabulary, ...]:
    return tuple(vocabulary(place) for place in cards(root))


def vocabulary(place: Place) -> Vocabulary:
    title = words(place.title)
    failure = frozenset((*title, *more_words(place)))
    cure = frozenset(words(place.cure))
    return Vocabulary(failure, tuple(title), cure - failure)


def named(title: tuple[str, ...], asked: list[str]) -> float:
    """How much of a title was asked for."""
    there = [word for word in title if word in asked]
    return len(there) / max(len(title), 1)


@cache
def compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.MULTILINE)


def matches(line: str, expressions: tuple[str, ...]) -> list[str]:
    return [one for one in expressions if compiled(one).search(line)]


def look_up(line: str, root: Path) -> Answer:
    """What a line of a log, or what a reader writes, may mean."""
    line = line.strip()
    reported = bool(re.search(REPORTED, line))
    points, message = score(line, root, reported)
    tell(line, root, points, message)
    found = best(root, points, message)
    by_message = bool(found) and message[found[0].id]
    noise = ALWAYS_NOISE if by_message else NOISE
    if re.search(noise, line):
        return Answer((), HEALTHY)
    tells = by_message and points[found[0].id] > HINT
    for expression, sentence in CONSEQUENCES:
        if not tells and re.search(expression, line):
            return Answer((), sentence)
    certain = by_message and points[found[0].id] > CERTAIN
    return Answer(found, verdict(found, by_message, certain, reported))


def score(line: str, root: Path, reported: bool) -> tuple[dict, dict]:
    """Points of each place by its words or by a message of its own."""
    known, theirs = cards(root), vocabularies(root)
    asked = words(line)
    worth = {word: value_of(word, theirs) for word in asked}
    total = sum(worth.values())
    points: dict[str, float] = {}
    message: dict[str, bool] = {}
    for place, own in zip(known, theirs, strict=True):
        there = [word for word in asked if word in own.failure]
        of_cure = [word for word in asked if word in own.cure]
        weight = sum(worth[word] for word in there)
        weight += OF_CURE * sum(worth[word] for word in of_cure)
        hits = len(there) + len(of_cure)
        share = hits / max(len(asked), 1)
        enough = share >= LEAST_SHARE
        if reported:
            enough = weight >= max(LEAST_WORTH, LEAST_WEIGHT * total)
        value = weight * share * place.scale * (1 + named(own.title, asked))
        points[place.id] = value if enough else 0.0
        own_messages = matches(line, place.messages)
        message[place.id] = bool(own_messages)
        if own_messages:
            first = place.messages.index(own_messages[0])
            points[place.id] += place.points - 10 * first
    return points, message


def value_of(word: str, theirs: tuple[Vocabulary, ...]) -> float:
    """A word is worth more the fewer places have it; one that none has, little."""
    count = sum(word in own.failure or word in own.cure for own in theirs)
    if count == 0:
        return UNKNOWN
    return 1 + math.log(len(theirs) / count)


def tell(line: str, root: Path, points: dict, message: dict) -> None:
    """Add what workshop diagnose knows of this line."""
    explained: set[str] = set()
    others: set[str] = set()
    told: dict[str, float] = {}
    hits = []
    for rule in rules():
        sure = bool(matches(line, rule.sure))
        other = bool(rule.unless and compiled(rule.unless).search(line))
        hits.append((rule, sure, other, sure or bool(matches(line, rule.maybe))))
        if sure and not other:
            explained.update(rule.explains)
    for number, (rule, sure, other, hit) in enumerate(hits):
        if not hit or rule.name in explained:
            continue
        value = SURE if sure else HINT if rule.weight == 1 else MAYBE
        for place, one in enumerate(rule.ids):
            if other:
                others.add(one)
            else:
                told[one] = max(value - 20 * place - 0.1 * number, told.get(one, 0))
    for one in others - set(told):
        points[one], message[one] = 0.0, False
    for one, value in told.items():
        points[one], message[one] = value, True


def best(root: Path, points: dict, message: dict) -> tuple[Place, ...]:
    """Those whose message it is, otherwise those with the most words."""
    found = [one for one in cards(root) if message[one.id]]
    if not found:
        most = max(points.values(), default=0.0)
        near = [one for one in cards(root) if points[one.id] > 0]
        found = [one for one in near if points[one.id] >= most / 2]
    return tuple(sorted(found, key=lambda one: -points[one.id])[:MOST])


def verdict(
    found: tuple[Place, ...], by_message: bool, certain: bool, reported: bool
) -> str:
    if not found:
        return NO_LINE if reported else NO_WORDS
    count = "1 failure" if len(found) == 1 else f"{len(found)} failures"
    if by_message and certain:
        return f"{count} with that message."
    if by_message:
        return f"{count} that may have that message."
    if reported:
        with_words = f"{NEAR} {count} with its words"
        return f"{with_words}; if none fits, run workshop diagnose LOG."
    return f"{count} with these words."


def told_lines(text: str, root: Path) -> tuple[list[str], bool]:
    """(what ``workshop diagnose --words`` prints, whether something was found)."""
    answer = look_up(text, root)
    lines = [answer.says]
    for place in answer.cards:
        lines += [f"  - {place.title} ({place.group})", f"    {place.cure}"]
        lines.append(f"    Read: {place.address}")
    return lines, bool(answer.cards)
