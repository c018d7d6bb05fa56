"""Run the command line, as ``python -m kubectl_spread`` or as ``python -I DIRECTORY/kubectl_spread``.

The current directory often holds a repository that somebody else wrote. The second way imports nothing from it: ``-I``
takes neither the current directory nor PYTHONPATH nor the user's own packages, and the path names the package. With
``-m`` alone the interpreter itself imports modules from the current directory before this one runs; from here on
nothing more is imported from there.
"""

# Only modules that the interpreter has already imported: any other one could come from the current directory.
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


def _find_what_is_beside() -> None:
    """Put the directory that holds this package where the interpreter put this package itself."""
    package = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - likewise
    sys.path[0] = os.path.dirname(package)  # noqa: PTH120 - likewise


if __name__ == "__main__":
    if __package__:
        _forget_the_current_directory()
    else:
        _find_what_is_beside()
    from kubectl_spread.cli import main

    main()
