"""What Tab can complete in a shell besides files: it must be quick, and silent whatever is broken."""


def pair_names(incomplete: str) -> list[str]:
    """The names of pairs that begin like `incomplete`, those of the shipped table alone if the user's own is wrong."""
    from specdec_cli.errors import UsageError
    from specdec_cli.pair_list import read_catalog
    from specdec_cli.pair_table import read_table, shipped_table

    try:
        names = list(read_catalog(None).pairs)
    except UsageError:
        names = list(read_table(shipped_table()).pairs)
    return [name for name in names if name.startswith(incomplete)]


def drafters(incomplete: str) -> list[str]:
    """Words and GGUF files that a draft may begin with; the part behind the last comma is completed."""
    from pathlib import Path

    done, comma, last = incomplete.rpartition(",")
    words = ["lookup", "none", "text:", "table:"] if not comma else ["lookup", "text:", "table:"]
    folder = Path(last[: last.rfind("/") + 1] or ".")
    try:
        beside = sorted(folder.iterdir())
    except OSError:
        beside = []
    prefix = last[: last.rfind("/") + 1]
    files = [f"{prefix}{each.name}" for each in beside if each.suffix == ".gguf"]
    folders = [f"{prefix}{each.name}/" for each in beside if each.is_dir() and not each.name.startswith(".")]
    return [f"{done}{comma}{each}" for each in [*words, *files, *folders] if each.startswith(last)]
