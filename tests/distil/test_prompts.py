"""The prompts of the package: many, of several kinds, and none about a topic that is kept for evaluation."""

from __future__ import annotations

import tomllib

from specdec_cli.distil.prompts import SOURCE, held_out_prompts, own_prompts, training_prompts

TOPICS = tomllib.loads(SOURCE.read_text("utf-8"))["topics"]
FORMS = tomllib.loads(SOURCE.read_text("utf-8"))["forms"]


def test_every_topic_is_asked_about_in_every_form_either_to_learn_or_to_evaluate() -> None:
    training, held_out = training_prompts(), held_out_prompts()
    assert len({*training, *(each.text for each in held_out)}) == len(TOPICS) * sum(map(len, FORMS.values()))
    assert set(training).isdisjoint(each.text for each in held_out)
    assert 0.09 < len(held_out) / (len(training) + len(held_out)) < 0.11


def test_no_training_prompt_is_about_a_topic_of_the_evaluation() -> None:
    form = FORMS["questions"][0]
    topics = {each.text for each in held_out_prompts()} & {form.format(topic) for topic in TOPICS}
    learned = set(training_prompts()) & {form.format(topic) for topic in TOPICS}
    assert topics
    assert len(topics) + len(learned) == len(TOPICS)


def test_topics_and_forms_are_there_once() -> None:
    forms = [form for group in FORMS.values() for form in group]
    assert len(set(TOPICS)) == len(TOPICS)
    assert len(set(forms)) == len(forms)
    assert all(form.count("{}") == 1 for form in forms)


def test_the_order_is_the_same_each_time_and_mixes_the_kinds() -> None:
    assert training_prompts() == training_prompts()
    assert {each.kind for each in held_out_prompts()[:100]} == set(FORMS)


def test_own_prompts_are_the_lines_that_say_something() -> None:
    assert own_prompts(["one\n\n  \ntwo", "three\n"]) == ["one", "two", "three"]
