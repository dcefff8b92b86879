from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.errors import ModelError
from specdec_cli.llama import library
from specdec_cli.llama.library import clear_log, ggml, llama, log_errors, show_log
from tests.engine import opened
from tests.toy_gguf import attention_toy

DYING = """
import os, sys
from pathlib import Path
from specdec_cli.catalog import Pair
from specdec_cli.llama import library
from tests.engine import GREEDY, answer, opened

def leave(message):
    print(message, flush=True)
    os._exit(3)

library.on_abort(leave)
path = Path(sys.argv[1])
"""
TOO_MANY_ROWS = """
with opened(path, rows=2, batch=64) as context:
    context.extend([1] * 64, rows=64)
"""
ANSWER = 'answer(Pair(path, "none"), "hello")'


def _die(path: Path, code: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", DYING + code, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_a_failed_assertion_in_a_pass_ends_in_one_line(attention_pair: Pair) -> None:
    code, out, err = _die(attention_pair.target, TOO_MANY_ROWS)
    assert (code, err) == (3, "")
    assert out.startswith(f"evaluating target {attention_pair.target}: GGML_ASSERT(")
    assert len(out.splitlines()) == 1


def test_a_failed_assertion_while_loading_ends_in_one_line(tmp_path: Path) -> None:
    path = attention_toy().having({"llama.block_count": 0}).write(tmp_path / "model.gguf")
    code, out, err = _die(path, ANSWER)
    assert (code, err) == (3, "")
    assert out.startswith(f"loading target {path}: GGML_ASSERT(")
    assert len(out.splitlines()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="its C++ runtime does not tell")
def test_an_exception_that_cplusplus_does_not_catch_ends_in_one_line(tmp_path: Path) -> None:
    toy = attention_toy().having({"tokenizer.ggml.model": "llama"})  # whose bytes have other names
    path = toy.write(tmp_path / "model.gguf")
    code, out, err = _die(path, ANSWER)
    assert (code, err) == (3, "")
    assert out == f"reading text for target {path}: an exception that it does not handle\n"


def test_errors_are_told_from_warnings_and_the_cause_from_its_consequences() -> None:
    clear_log()
    for level, line in (
        (3, "load: a warning that comes first\n"),
        (4, "llama_model_load: error loading model: check_tensor_dims: tensor 'x' not found\n"),
        (4, "llama_model_load_from_file_impl: failed to load model\n"),
    ):
        _log(level, line)
    assert log_errors() == "tensor 'x' not found"
    clear_log()
    assert log_errors() == ""


def test_an_error_in_pieces_and_without_end_becomes_one_short_line() -> None:
    clear_log()
    _log(4, "decode: " + "much\nto read " * 100)
    assert log_errors().startswith("much to read much to read ")
    assert len(log_errors()) <= 301


def test_a_line_that_goes_on_has_the_level_of_its_beginning() -> None:
    clear_log()
    _log(3, "a warning that ")
    _log(5, "goes on")
    assert log_errors() == ""


def _log(level: int, line: str) -> None:
    library._log_callback(llama())(level, line.encode(), None)


def test_nothing_of_the_log_reaches_stderr(attention_pair: Pair, capfd: pytest.CaptureFixture[str]) -> None:
    with opened(attention_pair.target) as context:
        context.extend([1, 2], rows=1)
    assert capfd.readouterr() == ("", "")


def test_the_whole_log_is_shown_on_request(attention_pair: Pair) -> None:
    lines: list[str] = []
    show_log(lines.append)
    try:
        with opened(attention_pair.target):
            pass
    finally:
        show_log(None)
    assert any("general.architecture" in line for line in lines)


def test_pointers_of_functions_that_the_bindings_lack_keep_their_64_bits(attention_pair: Pair) -> None:
    device = ggml("ggml_backend_dev_get", ctypes.c_void_p, (ctypes.c_size_t,))(0)
    assert device > 2**32
    assert ggml("ggml_backend_dev_name", ctypes.c_char_p, (ctypes.c_void_p,))(device) == b"CPU"


def test_a_function_that_does_not_exist_is_an_attribute_error() -> None:
    llama()
    with pytest.raises(AttributeError, match="ggml_no_such_function"):
        ggml("ggml_no_such_function", None)


def test_bindings_that_do_not_import_are_an_error_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(ModelError, match="llama-cpp-python does not load") as caught:
        llama.__wrapped__()
    assert "pip install" in caught.value.hint
