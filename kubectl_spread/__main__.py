"""Run the command line, as ``python -m kubectl_spread`` or as ``python -I DIRECTORY/kubectl_spread``.

The current directory is often a repository that somebody else wrote. The second way imports nothing from it: ``-I``
takes neither the current directory nor PYTHONPATH nor the user's own packages, and the path names the package. With
``-m`` alone the interpreter itself imports modules from the current directory before this one runs; from here on
nothing more is imported from there.
"""

# The interpreter has already imported these modules; any other could come from the current directory.
import os
import sys


def _forget_the_current_directory() -> None:
    """Remove the current directory from the front of the import path, where ``python -m`` puts it."""
    try:
        current = os.getcwd()  # noqa: PTH109 - pathlib could be the repository's
    except OSError:
        current = ""
    if sys.path[0] in {"", current}:
        del sys.path[0]


def _import_from_own_parent() -> None:
    """Replace this package's directory at the front of the import path by its parent directory."""
    package = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - likewise
    sys.path[0] = os.path.dirname(package)  # noqa: PTH120 - likewise


if __name__ == "__main__":
    if __package__:
        _forget_the_current_directory()
    else:
        _import_from_own_parent()
    from kubectl_spread.cli import main

    main()
