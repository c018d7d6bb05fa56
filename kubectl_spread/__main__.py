"""Run the command line, as ``python -m kubectl_spread`` or as ``python -I DIRECTORY/kubectl_spread``.

The current directory is often a repository that somebody else wrote. The second way imports nothing from it: ``-I``
takes neither the current directory nor PYTHONPATH nor the user's own packages, and the path names the package. With
``-m`` alone the interpreter itself imports modules from the current directory before this one runs; from here on
nothing more is imported from there.
"""

# These modules are built in or already imported; any other could come from the current directory.
import _signal  # type: ignore[import-not-found] # in the milliseconds that signal takes Ctrl-C prints a traceback
import os
import sys

_FAILED = 2
_INTERRUPTED = 130


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


def main() -> None:
    """Run the command line; Ctrl-C and a lack of memory also end its imports without a traceback."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        # An exception would be printed where an import cannot pass it on. Nothing has to be cleaned up yet.
        _signal.signal(_signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    try:
        import logging  # noqa: PLC0415 - the current directory is no longer searched

        # Where memory lacks, hashlib logs a traceback for each algorithm that it cannot load, and continues.
        logging.getLogger().addHandler(logging.NullHandler())
        from kubectl_spread.cli import main as run  # noqa: PLC0415 - likewise

        run()
    except Exception as error:  # noqa: BLE001 - exit status 1 means findings
        _fail(error)


def _fail(error: Exception) -> None:
    """End the process after an error that the command line could not report itself."""
    try:
        from kubectl_spread.cli import ending  # noqa: PLC0415 - likewise

        if not ending.reported:
            ending.report(error)
    except Exception:  # noqa: BLE001 - too little memory, or a broken installation
        # Other messages could contain secrets.
        reason = f": {error}" if isinstance(error, ImportError) else ""
        os.write(2, f"error: cannot start: {type(error).__name__}{reason}\n".encode(errors="replace"))
    os._exit(_FAILED)


if __name__ == "__main__":
    if __package__:
        _forget_the_current_directory()
    else:
        _import_from_own_parent()
    main()
