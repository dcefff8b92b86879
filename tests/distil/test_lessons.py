"""What a network reads: a compact vocabulary, and windows in which each place knows what was likely after it."""

from __future__ import annotations

import numpy as np
import pytest

from specdec_cli.distil.answers import Answer
from specdec_cli.distil.lessons import Course, Vocabulary, known_of

SIZE = 50


def answer(number: int, tokens: list[int], start: int, chance: float = 0.9) -> Answer:
    """Each token of the answer has `chance`, and the one after it in the vocabulary what is left."""
    said = np.array(tokens[start:], np.int32)
    likely = np.stack([said, (said + 1) % SIZE], axis=1).astype(np.int32)
    logprobs = np.log(np.tile([chance, 1 - chance], (len(said), 1))).astype(np.float16)
    return Answer(number, start, np.array(tokens, np.int32), likely, logprobs)


def test_known_are_the_tokens_that_occur_or_are_expected_to() -> None:
    answers = [answer(0, [7, 3, 3], 1), answer(1, [9, 3], 1, chance=0.95)]
    vocabulary = known_of(answers, SIZE)
    assert [*vocabulary.known] == [3, 7, 9], "4 was likely three times, but is expected less than once"
    assert [*known_of([*answers, *[answer(2, [7, 3], 1)] * 9], SIZE).known] == [3, 4, 7, 9]
    assert (vocabulary.rows, vocabulary.others) == (4, SIZE - 3)


def test_ids_that_are_not_known_share_the_last_row() -> None:
    vocabulary = Vocabulary(np.array([3, 7, 9]), SIZE)
    assert vocabulary.compact(np.array([[9, 0], [3, 49]])).tolist() == [[2, 3], [0, 3]]


@pytest.fixture
def course() -> Course:
    answers = [answer(number, [number, 10, 20 + number, 30, 31], 2) for number in range(8)]
    return Course(answers, Vocabulary(np.arange(SIZE), SIZE), window=5)


def test_each_place_is_followed_by_what_the_target_found_likely_there(course: Course) -> None:
    for batch in course.batches(2, np.random.default_rng(0)):
        text = batch.tokens.flatten()
        for place, likely, logprobs in zip(batch.places, batch.likely, batch.logprobs, strict=True):
            assert likely[0] == text[place + 1]
            assert text[place] not in range(8), "what follows in a prompt is not learned"
            assert logprobs[0] > logprobs[1]


def test_an_epoch_holds_all_answers_in_another_order_than_the_next(course: Course) -> None:
    luck = np.random.default_rng(0)
    first, second = ([batch.tokens for batch in course.batches(2, luck)] for _ in range(2))
    assert len(first) == course.count(2) == 4
    for epoch in (first, second):
        assert sorted(np.concatenate(epoch)[:, 0]) == [*range(8)]
    assert not np.array_equal(first, second)


def test_the_same_luck_gives_the_same_batches(course: Course) -> None:
    one, other = ([*course.batches(3, np.random.default_rng(4))] for _ in range(2))
    for left, right in zip(one, other, strict=True):
        assert np.array_equal(left.tokens, right.tokens)
        assert np.array_equal(left.places, right.places)
