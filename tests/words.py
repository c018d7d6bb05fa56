"""Words that the project does not write, and the words to write instead; run as a module it lists their places.

``make lint`` runs it. It reads prose only: pages, docstrings, comments, and every string of the plugin, as users read
those.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
REPLACEMENTS: Final = {
    r"judge[ds]?|judging": "evaluate, check",
    r"constraint rows?": "constraints",
    r"the merge (would |will )?makes? of": "what the API server would store for",
    r"stands? (twice|more than once)": "appears twice, is duplicated",
    # "There is no pod" is common English, "it is no pod" is not.
    r"(?<!there\s)(is|are) no(?! (longer|more|less|better|higher|lower|wider|larger|older|newer))": "is not a",
    r"by their owner": "restart the workload",
    r"holds all": "has all",
    r"(is|are) (said|told)": "is reported, is printed",
    # At the beginning of a clause the word means "else"; elsewhere it is used for "differently".
    r"(?-i:(?<![,;]\s)(?<!or\s)(?<!would\s)otherwise)": "differently",
    r"beside": "next to",
    r"heed(s|ed|ing)?": "respect",
    r"anew": "again",
    r"save that": "except that",
    r"go(es)? on": "continue, still apply",
    r"leads? back to": "the API server repeated a continue token",
    r"nothing that can be read": "the cause cannot be determined from the API",
    r"has nothing against": "allows",
    r"is there again": "reconnected",
    r"folders?": "directory",
    r"for ever": "never changes",
    r"gates assumed": "default feature gates",
    r"at or before": "before",
    r"the key does nothing": "the key is ignored",
    r"(has|have) (something|anything) to say": "apply to",
    r"of the named domain": "the command with the names of the pods",
    r"correct the key,? or add the label": "use the right key, and name it",
    r"other tools and copies": "the effect on the pods",
    r"holds? \d+ pods?|held by": "zone a has 2 pods",
    r"share what they hold": "share one tuple",
}
PATTERN: Final = re.compile(
    "|".join(rf"\b(?:{words})\b" for words in REPLACEMENTS).replace(" ", r"\s+"), flags=re.IGNORECASE
)
CODE: Final = re.compile(r"``[^`]+``|`[^`\s]+`|\{[^{}\s]*\}|\]\([^)\s]*\)")
"""Names in backquotes, placeholders and the addresses of links are identifiers."""

PAGES: Final = (
    "*.md",
    ".github/**/*.*",
    "action.yml",
    "Makefile",
    "release/*.yaml",
    "docs/**/*.md",
    "examples/*.md",
    "mixin/*.md",
    "docs/**/*.yaml",
    "mixin/*.libsonnet",
    "mixin/tests.yaml",
    *(f"kubectl_spread/**/*.{ending}" for ending in ("html", "js", "css", "json", "toml")),
)
PYTHON: Final = ("kubectl_spread", "release", "benchmarks", "tests")
UNREAD: Final = {"tests/words.py"}


class Place(NamedTuple):
    """A word to replace, and where it is."""

    path: str
    line: int
    words: str

    def __str__(self) -> str:
        """Return the line to print: the place, the word and what to write instead."""
        return f'{self.path}:{self.line}: write "{replacement(self.words)}", not "{self.words}"'


def replacement(words: str) -> str:
    """Return the words to write instead of ``words``, as :func:`find` reports them."""
    return next(better for old, better in REPLACEMENTS.items() if re.match(rf"{old}\b", words, re.IGNORECASE))


def find(text: str) -> Iterator[tuple[int, str]]:
    """Yield the words to replace in a text, each with the number of line breaks before it."""
    prose = CODE.sub(lambda code: re.sub(r"\S", "`", code[0]), text)
    for match in PATTERN.finditer(prose):
        yield prose.count("\n", 0, match.start()), " ".join(match[0].split())


def texts(source: str, *, strings: bool) -> Iterator[tuple[int, str]]:
    """Yield the comments and docstrings of a Python module, or all its strings, each with its line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text)) as constant) if not strings:
                yield constant.lineno, text
            case ast.Constant(value=str(text)) if strings and not text.isidentifier():
                yield node.lineno, text


def places() -> Iterator[Place]:
    """Yield the places of all words to replace in the project."""
    for pattern in PAGES:
        for path in ROOT.glob(pattern):
            yield from _places(path, [(1, path.read_text(encoding="utf-8"))])
    for room in PYTHON:
        for path in (ROOT / room).rglob("*.py"):
            yield from _places(path, texts(path.read_text(encoding="utf-8"), strings=room == "kubectl_spread"))


def _places(path: Path, parts: Iterable[tuple[int, str]]) -> Iterator[Place]:
    name = path.relative_to(ROOT).as_posix()
    for line, text in parts if name not in UNREAD else ():
        for breaks, words in find(text):
            yield Place(name, line + breaks, words)


if __name__ == "__main__":
    lines = sorted({str(place) for place in places()})
    sys.exit("\n".join(lines) or 0)
