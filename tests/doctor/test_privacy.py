"""Nothing that names a person, a machine or a secret leaves a report."""

from __future__ import annotations

import getpass
import platform
from pathlib import Path

import pytest

from specdec_cli.doctor.privacy import Privacy

TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUvWx"


@pytest.fixture
def privacy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Privacy:
    monkeypatch.setattr(Path, "home", lambda: Path("/srv/people/alice"))
    monkeypatch.setattr(platform, "node", lambda: "wonderland.example.org")
    monkeypatch.setattr(getpass, "getuser", lambda: "alice")
    return Privacy.of_process({"HF_TOKEN": TOKEN, "MY_API_KEY": "open sesame", "USER": "alice", "HOSTNAME": "c0ffee99"})


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("/srv/people/alice", "~"),
        ("/srv/people/alice/models/big.gguf cannot be read", "~/models/big.gguf cannot be read"),
        ("/srv/people/alicent/big.gguf", "/srv/people/alicent/big.gguf"),
        ("/backup/srv/people/alice/big.gguf", "/backup/srv/people/<user>/big.gguf"),
        ("/data/alice/big.gguf", "/data/<user>/big.gguf"),
        ("alice-1.5b.gguf by Alice_2", "<user>-1.5b.gguf by <user>_2"),
        ("malice and palice42", "malice and palice42"),
        ("/home/bob/x.gguf or C:\\Users\\Bob\\x.gguf", "/home/<user>/x.gguf or C:\\Users\\<user>\\x.gguf"),
        ("on wonderland.example.org, WONDERLAND, c0ffee99", "on <host>, <host>, <host>"),
        (f"{TOKEN} or {TOKEN}x", "<secret> or <secret>x"),
        ("hf_ZyXwVuTsRqPoNmLkJi of somebody else", "<secret> of somebody else"),
        ("the key is open sesame", "the key is <secret>"),
        ("https://alice:pass@hub.example/x", "https://<secret>@hub.example/x"),
        ("worker gpu-box.lan:50052 or 10.0.0.7:1", "worker <host>:50052 or 10.0.0.7:1"),
        ("rpc 10.0.0.7:99999 has the port", "rpc <host>:99999 has the port"),
        ("at localhost:50052 and 127.0.0.1:50053", "at localhost:50052 and 127.0.0.1:50053"),
        ("~/models.toml:123: x, v(4) 2.0, 0:12, x/y:9", "~/models.toml:123: x, v(4) 2.0, 0:12, x/y:9"),
        ("CPU 2 of 2, gpt2/default, [bold]", "CPU 2 of 2, gpt2/default, [bold]"),
    ],
)
def test_names_and_secrets_are_replaced_and_nothing_else(privacy: Privacy, text: str, hidden: str) -> None:
    assert privacy.hide(text) == hidden


def test_hosts_of_workers_are_told_apart_by_numbers_and_hidden_where_they_are_meant(privacy: Privacy) -> None:
    given = ("llama:50052", "127.0.0.1:50052", "10.0.0.1:50052", "llama:50053", "[bold]:5")
    hide = privacy.of_workers(given).hide
    assert hide("worker llama:50053, llama.cpp, llama") == "worker <host 1>:50053, llama.cpp, llama"
    assert hide("10.0.0.1:50052 and 110.0.0.1:50052") == "<host 2>:50052 and <host>:50052"
    assert hide("127.0.0.1:50052") == "127.0.0.1:50052"
    assert hide('there is no host "llama"') == 'there is no host "<host 1>"'
    assert hide("[bold]:5") == "<host 3>:5"


def test_every_text_in_json_is_hidden_and_the_names_of_fields_stay(privacy: Privacy) -> None:
    value = {"alice": ["/data/alice", 3, None, {"path": Path("/x").name, "key": TOKEN}], "ok": True}
    assert privacy.hide_in(value) == {
        "alice": ["/data/<user>", 3, None, {"path": "x", "key": "<secret>"}],
        "ok": True,
    }


@pytest.mark.parametrize("name", ["root", "ubuntu", ""])
def test_names_of_nobody_are_left_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/"))
    monkeypatch.setattr(platform, "node", lambda: "localhost")
    monkeypatch.setattr(getpass, "getuser", lambda: name)
    text = "/ubuntu/root on localhost"
    assert Privacy.of_process({"USER": name}).hide(text) == text


def test_a_very_short_name_is_hidden_where_it_is_a_folder_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "al")
    assert Privacy.of_process({}).hide("/data/al/x.gguf in al") == "/data/<user>/x.gguf in al"


def test_a_user_without_a_name_or_a_home_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 4242")

    def nowhere() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(getpass, "getuser", nobody)
    monkeypatch.setattr(Path, "home", nowhere)
    assert Privacy.of_process({}).hide("text") == "text"
