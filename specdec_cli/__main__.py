"""`python -m specdec_cli` is `specdec`."""

from specdec_cli.cli import main

main()
