"""Imports point one way; each outside library has one owner; the help waits for nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import specdec_cli

PACKAGE = Path(specdec_cli.__file__).parent
LAYERS = [
    {"__init__"},
    {"__main__"},
    {"cli"},
    {"commands"},
    {"chat", "tune", "theory_view", "distil"},
    {"answer", "conversation", "table_making", "bench", "audit", "doctor", "library", "worker"},
    {"tracing"},
    {"telling", "answer_json", "table_learning", "prompt"},
    {"question"},
    {"session"},
    {"pair_costs"},
    {"loading"},
    {"placing"},
    {"drafting"},
    {"generation", "calibration", "pairs"},
    {"drafters", "downloads", "status", "render", "sampling_settings", "advice", "traces"},
    {"llama", "catalog", "terminal", "memory"},
    {"pair_list"},
    {"pair_table", "ngram_file"},
    {"placing_keys"},
    {"vocabulary"},
    {"core"},
    {"context_size", "fitting", "endpoints"},
    {"errors", "limits", "settings", "files", "json_line"},
]
"""From the top: a room imports only from rooms below it, or from itself."""
ENGINE_ROOMS = {"llama", "drafters", "session", "generation", "vocabulary"}
"""Rooms that touch a model."""
SHOWING_ROOMS = {"terminal", "status", "render", "prompt"}


def room(module: str) -> str:
    """`specdec_cli.core.text` is in `core`."""
    return module.split(".")[1] if "." in module else "__init__"


def modules() -> dict[str, ast.Module]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = ast.parse(path.read_text("utf-8"))
    return found


MODULES = modules()


def imports(tree: ast.Module) -> Iterator[str]:
    """Full names of all imported modules, wherever the import stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def arrows() -> set[tuple[str, str]]:
    """Which room imports from which other."""
    return {
        (room(module), room(name))
        for module, tree in MODULES.items()
        for name in imports(tree)
        if name.startswith("specdec_cli.") and room(name) in set().union(*LAYERS)
    }


def test_every_module_has_its_layer() -> None:
    assert {room(module) for module in MODULES} == set().union(*LAYERS) | {"__init__"}


def test_imports_point_downwards_only() -> None:
    depth = {name: level for level, layer in enumerate(LAYERS) for name in layer}
    wrong = {(above, below) for above, below in arrows() if above != below and depth[above] >= depth[below]}
    assert wrong == set()
    assert ("session", "llama") in arrows(), "the walk sees imports"


def test_core_imports_nothing_of_ours_but_errors() -> None:
    assert {below for above, below in arrows() if above == "core"} <= {"core", "errors"}


@pytest.mark.parametrize("above", sorted(SHOWING_ROOMS))
def test_what_shows_never_touches_a_model(above: str) -> None:
    assert {below for start, below in arrows() if start == above}.isdisjoint(ENGINE_ROOMS)


def test_commands_never_import_the_engine_itself() -> None:
    assert {below for above, below in arrows() if above == "commands"}.isdisjoint({"llama", "drafters", "vocabulary"})


@pytest.mark.parametrize(
    ("library", "owners"),
    [
        ("llama_cpp", {"llama"}),
        ("rich", {"terminal", "status", "render", "pairs", "bench", "traces"}),
        ("matplotlib", {"bench"}),
        ("tomlkit", {"pairs"}),
        ("typer", {"cli", "commands"}),
        ("prompt_toolkit", {"chat"}),
        ("huggingface_hub", {"downloads"}),
        ("jinja2", {"traces"}),
        ("markupsafe", {"traces"}),
        ("torch", {"distil"}),
        ("gguf", {"distil"}),
        (
            "numpy",
            {"core", "drafters", "llama", "ngram_file", "table_learning", "audit", "library", "worker", "distil"},
        ),
    ],
)
def test_each_library_has_its_owners(library: str, owners: set[str]) -> None:
    users = {
        room(module) for module, tree in MODULES.items() for name in imports(tree) if name.split(".")[0] == library
    }
    assert users
    assert users <= owners


def test_core_uses_only_numpy_and_the_standard_library() -> None:
    used = {name.split(".")[0] for module, tree in MODULES.items() if room(module) == "core" for name in imports(tree)}
    assert used - sys.stdlib_module_names == {"numpy", "specdec_cli"}


def test_core_has_no_clock_no_input_and_no_global_luck() -> None:
    used = {name for module, tree in MODULES.items() if room(module) == "core" for name in imports(tree)}
    assert used.isdisjoint({"time", "datetime", "os", "sys", "random", "io", "pathlib", "logging", "secrets"})


def test_nothing_prints() -> None:
    printing = [
        module
        for module, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


@pytest.mark.parametrize(
    "arguments", [["--help"], ["generate", "--help"], ["chat", "--help"], ["models", "--help"], ["--version"]]
)
def test_help_waits_for_neither_llama_cpp_nor_numpy(arguments: list[str]) -> None:
    script = (
        "import sys; from specdec_cli.cli import run\n"
        f"code = run({arguments!r})\n"
        "heavy = {'llama_cpp', 'numpy', 'jinja2'} & set(sys.modules)\n"
        "sys.exit(f'imports {heavy}' if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "specdec" in done.stdout
