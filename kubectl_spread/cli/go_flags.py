"""Options in the forms that kubectl accepts and click does not: ``-A=true``, ``--watch=false``, ``-n=shop``, ``-v=6``.

Source: github.com/spf13/pflag v1.0.10 flag.go, parseLongArg and parseSingleShortArg; bool.go; Go's strconv.ParseBool.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

import click

_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
_LEVELS: Final = ("-v", "--v")
"""The names of kubectl's option whose value is a number; a level above 0 is the flag ``--verbose``."""


def for_click(command: click.Command, ctx: click.Context, arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command as click reads them: the flags that are true, then everything else.

    Of several values of a flag the last one holds.

    Raises:
        click.UsageError: The value of a flag is not a boolean.
    """
    return _Words(command, ctx, arguments).read()


class _Words:
    """The words of a command line that are not read yet, and the flags that are."""

    def __init__(self, command: click.Command, ctx: click.Context, arguments: Sequence[str]) -> None:
        options = [option for option in command.get_params(ctx) if isinstance(option, click.Option)]
        self._options = {name: option for option in options for name in option.opts}
        if "-v" in self._options:
            self._options["--v"] = self._options["-v"]
        self._ctx = ctx
        self._words = deque(arguments)
        self._flags: dict[str, bool] = {}

    def read(self) -> list[str]:
        """Return the flags that are true, and the other words."""
        others: list[str] = []
        while self._words:
            word = self._words.popleft()
            is_option = word.startswith("-") and word not in ("-", "--")
            if is_option:
                others += self._long(word) if word.startswith("--") else self._short(word)
                continue
            others.append(word)
            if word == "--" or not self._ctx.allow_interspersed_args:
                break
        return [*self._spelled(), *others, *self._words]

    def _spelled(self) -> Iterator[str]:
        """Yield the flags that are true, and the names by which others are false that are true by default."""
        for name, value in self._flags.items():
            yield from [name] if value else self._options[name].secondary_opts[:1]

    def _long(self, word: str) -> list[str]:
        name, equals, text = word.partition("=")
        option = self._options.get(name)
        if option is None or not option.is_flag:
            return [word] if equals or option is None else [word, *self._next()]
        self._set(option, name, text if equals else None)
        return []

    def _short(self, word: str) -> list[str]:
        for index, letter in enumerate(word[1:], 1):
            name, text = f"-{letter}", word[index + 1 :]
            option = self._options.get(name)
            if option is None:
                return [f"-{word[index:]}"]
            if not option.is_flag:
                return [name, text.removeprefix("=")] if text else [name, *self._next()]
            has_value = text.startswith("=") or (name in _LEVELS and text.isdecimal())
            self._set(option, name, text.removeprefix("=") if has_value else None, last=not text)
            if has_value:
                break
        return []

    def _next(self) -> list[str]:
        """Return the next word, which is the value of an option; none at the end."""
        return [self._words.popleft()] if self._words else []

    def _set(self, option: click.Option, name: str, text: str | None, *, last: bool = True) -> None:
        if text is None and last and name in _LEVELS and self._words and self._words[0].isdecimal():
            text = self._words.popleft()
        level = text is not None and name in _LEVELS and text.isdecimal()
        value = True if text is None else int(text) > 0 if level else _BOOLEANS.get(text)
        if value is None and not self._ctx.resilient_parsing:
            raise click.UsageError(f'{name}: "{text}" is not a boolean (write {name}=true or {name}=false)', self._ctx)
        self._flags[max(option.opts, key=len)] = value is not False
