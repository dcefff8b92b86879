"""The engine for programs: `from specdec_cli import open_pair`; see docs/library.md."""
