from __future__ import annotations

import pytest

from specdec_cli.context_size import choose_size
from specdec_cli.errors import UsageError


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "size"),
    [(10, 20, 4096), (10, None, 4096), (3000, None, 5048), (4000, 5000, 9000), (9000, None, 10000)],
)
def test_the_size_grows_with_what_prompt_and_answer_need(prompt: int, max_tokens: int | None, size: int) -> None:
    assert choose_size(prompt, max_tokens, given=None, trained=10000) == size


@pytest.mark.parametrize(("given", "size"), [(0, 10000), (2, 2), (100, 100), (20000, 20000)])
@pytest.mark.parametrize("held", [0, 50, 4096])
def test_a_given_size_is_that_whatever_is_needed_or_held(given: int, size: int, held: int) -> None:
    assert choose_size(1, 5000, given=given, trained=10000, held=held) == size


@pytest.mark.parametrize(
    ("held", "prompt", "size"),
    [
        (4096, 2048, 4096),
        (4096, 2049, 8192),
        (4096, 9000, 11048),
        (8192, 10, 8192),
        (5000, 100, 5000),
        (16384, 15000, 20000),
    ],
)
def test_a_held_size_stays_while_it_is_enough_and_then_doubles(held: int, prompt: int, size: int) -> None:
    assert choose_size(prompt, None, given=None, trained=20000, held=held) == size


@pytest.mark.parametrize(("given", "size"), [(None, 2048), (0, 2048), (1, 1), (256, 256), (4000, 4000)])
@pytest.mark.parametrize("over", [0, 1, 5])
def test_a_prompt_that_leaves_no_room_is_refused_with_both_numbers(given: int | None, size: int, over: int) -> None:
    with pytest.raises(UsageError) as caught:
        choose_size(size + over, None, given=given, trained=2048)
    assert caught.value.message == f"the prompt has {size + over} tokens and the context holds {size}, answer included"
    assert ("over the trained 2048" in caught.value.hint) == (given is None)
