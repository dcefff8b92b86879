"""The page put together: its template, style and script from this folder, and the trace as data between them.

The content security policy allows this very style and this very script by their hashes, and nothing else. Whatever a
model said is JSON without `<`, which the script turns into text nodes only: Trusted Types forbid it anything else.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from specdec_cli.traces.page.facts import to_name, to_title
from specdec_cli.traces.page.payload import to_payload
from specdec_cli.traces.trace import Trace

STYLES: Final = ("base", "layout", "tokens", "round", "charts")
SCRIPTS: Final = ("elements", "words", "answer", "bars", "round", "charts", "overview", "main")
"""In this order they make one module."""


def to_page(trace: Trace) -> str:
    """`trace` as a page, to be written as UTF-8."""
    style, script = _joined("styles", STYLES, "css"), _joined("scripts", SCRIPTS, "js")
    environment = Environment(
        loader=PackageLoader("specdec_cli.traces", "page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("page.html").render(
        policy=_policy(style, script),
        title=to_title(trace),
        icon="data:image/svg+xml," + quote(_asset("icon.svg")),
        style=Markup(style),
        script=Markup(script),
        names=_data([to_name(number, answer) for number, answer in enumerate(trace.answers, 1)]),
        answers=[_data(to_payload(answer)) for answer in trace.answers],
    )


def _policy(style: str, script: str) -> str:
    """The content security policy of a page with just these."""
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {_hash(script)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _data(value: Any) -> Markup:
    """JSON without what could end its script element or begin a comment there."""
    return Markup(json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"))


def _joined(folder: str, names: Sequence[str], ending: str) -> str:
    return "\n" + "\n".join(_asset(f"{folder}/{name}.{ending}") for name in names)


def _asset(path: str) -> str:
    return (files(__package__) / path).read_text("utf-8")
