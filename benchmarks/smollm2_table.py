"""The recipe of the table of n-grams that comes with the embedded pair: what SmolLM2 answers to 1,425 prompts.

    python -m benchmarks.smollm2_table --target SmolLM2-135M-Instruct.Q4_1.gguf --output tables/smollm2.ngrams

Three quarters of an hour on one core. The prompts are the first of all topics in all forms, shuffled. The first part
writes the file, and each further part extends it, so that a run that is broken off leaves a table that is good for
something.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path
from typing import Final

from specdec_cli.cli import run

PARTS: Final = 3
IN_PART: Final = 475
"""Prompts."""

TOPICS: Final = """
the water cycle, volcanoes, photosynthesis, the Roman Empire, black holes, coffee, bread baking, houseplants,
bicycles, the human heart, vaccines, the stock market, inflation, personal budgeting, job interviews, time
management, learning to play the guitar, chess openings, the French Revolution, World War II, the printing press,
electric cars, solar power, wind turbines, climate change, coral reefs, whales, honeybees, dogs, cats, horses,
dinosaurs, the Moon, Mars, the solar system, gravity, electricity, magnets, atoms, DNA, evolution, the immune
system, sleep, stress, meditation, yoga, running a marathon, healthy eating, vegetarian cooking, pasta, tea,
chocolate, wine, Japanese gardens, Paris, New York City, Egypt, India, Brazil, mountain climbing, camping, swimming,
football, basketball, the Olympic Games, music theory, jazz, classical music, painting, photography, film making,
poetry, Shakespeare, fairy tales, science fiction, detective stories, robots, artificial intelligence, machine
learning, neural networks, computer viruses, passwords, the Internet, databases, operating systems, Python
programming, JavaScript, sorting algorithms, binary search, recursion, web design, video games, smartphones, social
media, remote work, teamwork, leadership, negotiation, public speaking, writing an essay, learning a language,
studying for exams, teaching children, raising a puppy, moving to a new city, planning a wedding, birthday parties,
travel on a budget, airplanes, trains, bridges, skyscrapers, recycling, plastic pollution, rain forests, deserts,
the oceans, rivers, earthquakes, hurricanes, the seasons, fractions, geometry, probability, statistics, algebra,
prime numbers, the scientific method, friendship, honesty, courage, happiness, grief, democracy, human rights, the
law, taxes, insurance, small businesses, marketing, customer service, e-mail, knitting, woodworking, gardening,
birdwatching, fishing, astronomy, philosophy, psychology, economics, archaeology
"""

FORMS: Final = """
What is {}?
Explain {} in simple terms.
Explain {} to a ten-year-old child.
Give me five facts about {}.
Write a short story about {}.
Write a poem about {}.
List ten questions that people ask about {}.
What are the advantages and disadvantages of {}?
Write an introduction to an article about {}.
Summarise the history of {} in three paragraphs.
Give me step-by-step advice for a beginner in {}.
What are common mistakes that people make with {}?
Write a dialogue between two friends who talk about {}.
Why is {} important?
Write an e-mail to a colleague about {}.
Make a table of key terms for {} with their meanings.
Write a Python class that has to do with {}.
Write a Python function about {} with a docstring.
Write a multiple-choice quiz about {}.
How does {} work?
Write a speech about {}.
What will {} look like in fifty years?
Give three examples that have to do with {}.
Write a blog post about {}.
Describe {} in one sentence, then in detail.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True, help="SmolLM2-135M-Instruct, a GGUF file")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--threads", default="1")
    arguments = parser.parse_args()
    every = prompts()
    for part in range(PARTS):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("\n".join(every[part * IN_PART : (part + 1) * IN_PART]))
            file.flush()
            code = run(
                ["table", "build", "--from-target", "--target", arguments.target, "--draft", "none"]
                + [
                    "--max-size",
                    "3",
                    "--seed",
                    str(part),
                    "--threads",
                    arguments.threads,
                    "--output",
                    str(arguments.output),
                ]
                + (["--extend"] if part else [])
                + [file.name]
            )
        if code:
            sys.exit(code)


def prompts() -> list[str]:
    """Every topic in every form, in the order of one shuffle."""
    topics = " ".join(TOPICS.split()).split(", ")
    forms = FORMS.strip().splitlines()
    every = [form.format(topic) for topic in topics for form in forms]
    random.Random(0).shuffle(every)
    return every


if __name__ == "__main__":
    main()
