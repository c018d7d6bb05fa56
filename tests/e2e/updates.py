"""``python -m tests.e2e.updates KUBECONFIG NAMESPACE``: watch, and print the objects in memory at each update."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from typing import Self

from kubectl_spread.cli import watch
from kubectl_spread.cli.formats import Output
from kubectl_spread.cli.watch import Picture
from kubectl_spread.render.table import Layout


class _Objects:
    """A display that prints the number of objects in memory, and of the types that have the most."""

    def __call__(self, *_: object) -> Self:
        return self

    def show(self, picture: Picture) -> None:
        """Print one line; it begins with the number of all objects."""
        assert picture.text()
        types = Counter(type(each).__name__ for each in gc.get_objects())
        print(types.total(), *(f"{name}={number}" for name, number in types.most_common(12)), flush=True)

    def note(self, text: str) -> None:
        """Fail: nothing delays the reading."""
        raise AssertionError(text)

    def progress(self, text: str) -> None:
        """Show no progress."""

    def tell_connection(self, trouble: str) -> None:
        """Fail where the connection is lost."""
        assert not trouble

    def fit(self) -> None:
        """Have no size."""

    def close(self) -> None:
        """Leave nothing behind."""


def main(kubeconfig: str, namespace: str) -> None:
    """Watch until the process is ended, without garbage collection but the one of each round, as ``main`` does."""
    for name, replacement in (("_INTERVAL", 0.0), ("_TICK", 0.01), ("Pipe", _Objects())):
        setattr(watch, name, replacement)
    gc.disable()
    parameters = {"kubeconfig": kubeconfig, "namespace": namespace}
    watch.follow(parameters, [Output("json")], "never", lambda *_: Layout(), None)


if __name__ == "__main__":
    main(*sys.argv[1:])
