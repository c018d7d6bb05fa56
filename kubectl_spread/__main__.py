"""Run the command line as ``python -m kubectl_spread``."""

from kubectl_spread.cli import main

if __name__ == "__main__":
    main()
