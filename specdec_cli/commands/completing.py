"""What Tab can complete in a shell besides files: it must be quick, and silent whatever is broken."""


def pair_names(incomplete: str) -> list[str]:
    """The names of pairs that begin like `incomplete`, those of the shipped table alone if the user's own is wrong."""
    from specdec_cli.errors import UsageError
    from specdec_cli.pair_list import read_catalog
    from specdec_cli.pair_table import read_table, shipped_table

    try:
        names = list(read_catalog(None).pairs)
    except (UsageError, OSError):
        names = list(read_table(shipped_table()).pairs)
    return [name for name in names if name.startswith(incomplete)]


def drafters(incomplete: str) -> list[str]:
    """Words and GGUF files that a draft may begin with; the part behind the last comma is completed."""
    from contextlib import suppress
    from pathlib import Path

    done, comma, last = incomplete.rpartition(",")
    words = ["lookup", "none", "text:", "table:"] if not comma else ["lookup", "text:", "table:"]
    prefix = last[: last.rfind("/") + 1]
    files, folders = [], []
    with suppress(OSError, RuntimeError):  # a folder that cannot be read, or the home of nobody
        for each in sorted(Path(prefix or ".").expanduser().iterdir()):
            if each.suffix == ".gguf":
                files.append(f"{prefix}{each.name}")
            elif each.is_dir() and not each.name.startswith("."):
                folders.append(f"{prefix}{each.name}/")
    return [f"{done}{comma}{each}" for each in [*words, *files, *folders] if each.startswith(last)]
