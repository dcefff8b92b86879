"""What must not be in a text that people paste into a bug report: names of people and machines, and secrets.

It is applied to the whole report, so that no part of it can forget to. File names and the names of pairs stay.
"""

from __future__ import annotations

import getpass
import ipaddress
import os
import platform
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

HOME, USER, HOST, SECRET = "~", "<user>", "<host>", "<secret>"
OF_NOBODY: Final = frozenset({"root", "user", "admin", "ubuntu", "debian", "runner", "home", "localhost", "local"})
"""Names that tell nothing about anybody."""
NAMES_OF_SECRETS: Final = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|KEY", re.IGNORECASE)
LOOKS_SECRET: Final = re.compile(r"\b(?:hf|sk|gh[pousr]|xox[abp])[_-][A-Za-z0-9_-]{8,}|(?<=://)[^/\s@]+@")
"""Tokens by their usual beginnings, and names with passwords in addresses."""
OTHER_HOMES: Final = re.compile(r"((?:^|(?<=[\s\"'=:(]))(?:/home|/Users|[A-Za-z]:\\Users)[/\\])[^/\\\s\"']+")
ENDPOINTS: Final = re.compile(r"(?<![\w./\\-])(?!localhost:|127\.)[\w-]+(?:\.[\w-]+)*(?<!\.toml):(?=\d{3,5}(?!\w))")
"""Machines that something listens on, as HOST:PORT."""
SHORTEST_SECRET, SHORTEST_WORD = 6, 3


@dataclass(frozen=True, slots=True)
class Privacy:
    """What to hide, each kind with its longest first; names are hidden in any case.

    `workers` are hosts with what stands for each.
    """

    homes: tuple[str, ...]
    users: tuple[str, ...]
    hosts: tuple[str, ...]
    secrets: tuple[str, ...]
    workers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of_process(cls, environment: Mapping[str, str] = os.environ) -> Privacy:
        """What this process knows of its user and machine."""
        homes = {str(path) for path in _homes() if len(path.parts) > 1}
        users = {environment.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER")}
        with suppress(KeyError, ImportError, OSError):  # a container may know no name of its user
            users.add(getpass.getuser())
        users |= {Path(home).name for home in homes}
        hosts = {platform.node(), platform.node().partition(".")[0]}
        hosts |= {environment.get(name, "") for name in ("HOSTNAME", "COMPUTERNAME")}
        secrets = {value for name, value in environment.items() if NAMES_OF_SECRETS.search(name)}
        return cls(
            homes=_longest_first(homes),
            users=_longest_first(name for name in users if name.lower() not in OF_NOBODY),
            hosts=_longest_first(name for name in hosts if name.lower() not in OF_NOBODY),
            secrets=_longest_first(each for each in secrets if len(each) >= SHORTEST_SECRET),
        )

    def of_workers(self, endpoints: Iterable[str]) -> Self:
        """Also the hosts of `endpoints`, which are told apart by numbers; loopback is everybody's and stays."""
        hosts = dict.fromkeys(endpoint.rpartition(":")[0] for endpoint in endpoints)
        named = [host for host in hosts if not _is_loopback(host)]
        return replace(self, workers=tuple((host, f"<host {number}>") for number, host in enumerate(named, 1)))

    def hide(self, text: str) -> str:
        """`text` without any of it."""
        for secret in self.secrets:
            text = text.replace(secret, SECRET)
        text = LOOKS_SECRET.sub(lambda found: SECRET + ("@" if found[0].endswith("@") else ""), text)
        for host, stand_in in self.workers:
            text = re.sub(rf'(?<![\w.-]){re.escape(host)}(?=:\d)|(?<="){re.escape(host)}(?=")', stand_in, text)
        text = ENDPOINTS.sub(f"{HOST}:", text)
        for home in self.homes:
            text = re.sub(rf"(?<![\w.-]){re.escape(home)}(?![\w.-])", lambda _: HOME, text)
        text = OTHER_HOMES.sub(lambda found: found[1] + USER, text)
        for names, stand_in in ((self.users, USER), (self.hosts, HOST)):
            for name in names:
                text = re.sub(_as_a_word(name), stand_in, text, flags=re.IGNORECASE)
        return text

    def hide_in(self, value: Any) -> Any:
        """The same for every text in a value of JSON; the names of its fields are ours, and stay."""
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, dict):
            return {name: self.hide_in(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide_in(each) for each in value]
        return value


def _homes() -> list[Path]:
    with suppress(RuntimeError, OSError):
        return [Path.home(), Path.home().resolve()]
    return []


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _longest_first(texts: Any) -> tuple[str, ...]:
    return tuple(sorted({text for text in texts if text}, key=lambda text: (-len(text), text)))


def _as_a_word(name: str) -> str:
    """A pattern of `name` that is no part of a longer word; a very short one only as a whole part of a path."""
    if len(name) < SHORTEST_WORD:
        return rf"(?<=[/\\]){re.escape(name)}(?=[/\\])"
    return rf"(?<![^\W_]){re.escape(name)}(?![^\W_])"
