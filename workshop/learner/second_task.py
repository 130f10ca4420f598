"""How far the learner is with the capstone's second task, in one line."""

from __future__ import annotations

from workshop.learner.house import House
from workshop.learner.progress import MISSING, NOT_STARTED

LESSON = "20_capstone"


def second_task(house: House) -> str:
    """Which of its exercises are right; "" before one of them has begun."""
    exercises = [one for one in house.every if one.lesson == LESSON and one.optional]
    states = house.progress.states(exercises)
    if set(states.values()) <= {NOT_STARTED, MISSING}:
        return ""
    told = [f"{one.name} is {states[one.name]}" for one in exercises]
    return f"The second task, optional: {', '.join(told)}."
