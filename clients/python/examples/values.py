"""Asks for a value of a type; a pydantic model does as well as a dataclass.

It needs a model, as `duologue profiles init` sets one up: the built-in engine, which answers without a provider, repeats
the prompt, which is no value, and the run ends with an AnswerError.
"""

from dataclasses import dataclass

from duologue.sync import Duologue


@dataclass
class City:
    name: str
    population: int


with Duologue() as chat:
    city = chat.run("Where is the Brandenburg Gate?", answer=City).value
    print(city.name, city.population)
