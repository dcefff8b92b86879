"""`python -m specdec_cli` is `specdec`. Ctrl-C is heard from the first import on."""

import sys


def main() -> None:
    """Run the command line of this process and exit."""
    try:
        from specdec_cli.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
