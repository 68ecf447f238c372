"""Numbers as English says them: one way or several, as words."""

from __future__ import annotations

import re

__all__ = ["spoken_forms"]

ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
SCALES = ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
SIGNS = {"$": "dollars", "€": "euros", "£": "pounds", "%": "percent", "°": "degrees"}
NUMBER = re.compile(r"(\d[\d,]*)(?:[.](\d+))?")
CLOCK = re.compile(r"(\d{1,2}):(\d{2})")
ORDINAL = re.compile(r"(\d[\d,]*)(?:st|nd|rd|th)")
LONGEST_DIGITS = 12


def spoken_forms(text: str) -> tuple[tuple[str, ...], ...]:
    """Return ways to say a written number, each as words; none where it is no number.

    Examples
    --------
    >>> spoken_forms("1962")[1]
    ('nineteen', 'sixty', 'two')
    """
    bare, sign = _without_sign(text)
    forms = _forms(bare)
    return tuple((*form, sign) if sign else form for form in forms)


def _without_sign(text: str) -> tuple[str, str]:
    for mark, name in SIGNS.items():
        if mark in text:
            return text.replace(mark, ""), name
    return text, ""


def _forms(text: str) -> list[tuple[str, ...]]:
    if clock := CLOCK.fullmatch(text):
        return _clock(int(clock[1]), int(clock[2]))
    if ordinal := ORDINAL.fullmatch(text):
        return [_ordinal(_whole(ordinal[1]))] if len(ordinal[1]) <= LONGEST_DIGITS else []
    number = NUMBER.fullmatch(text)
    if number is None or len(number[1]) > LONGEST_DIGITS:
        return []
    whole = _whole(number[1])
    if number[2]:
        return [(*_cardinal(whole), "point", *_digits(number[2]))]
    return [_cardinal(whole), *_in_pairs(number[1]), *_one_by_one(number[1])]


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


def _clock(hour: int, minute: int) -> list[tuple[str, ...]]:
    if minute == 0:
        return [(*_cardinal(hour), "o'clock"), _cardinal(hour)]
    return [(*_cardinal(hour), *(("oh",) if minute < 10 else ()), *_cardinal(minute))]


def _cardinal(value: int) -> tuple[str, ...]:
    if value < 20:
        return (ONES[value],)
    rest: tuple[str, ...]
    if value < 100:
        rest = (ONES[value % 10],) if value % 10 else ()
        return (TENS[value // 10], *rest)
    scale, name = next(s for s in SCALES if value >= s[0])
    rest = _cardinal(value % scale) if value % scale else ()
    return (*_cardinal(value // scale), name, *rest)


def _ordinal(value: int) -> tuple[str, ...]:
    *head, last = _cardinal(value)
    if last in ORDINALS:
        return (*head, ORDINALS[last])
    return (*head, last[:-1] + "ieth" if last.endswith("y") else last + "th")


def _digits(text: str) -> tuple[str, ...]:
    return tuple(ONES[int(c)] for c in text)


def _in_pairs(text: str) -> list[tuple[str, ...]]:
    """Return four digits as years are said."""
    if len(text) != 4 or not text.isdigit() or text[0] == "0" or text[1:3] == "00":
        return []
    first, second = int(text[:2]), int(text[2:])
    if second == 0:
        return [(*_cardinal(first), "hundred")]
    return [(*_cardinal(first), *(("oh",) if second < 10 else ()), *_cardinal(second))]


def _one_by_one(text: str) -> list[tuple[str, ...]]:
    return [_digits(text)] if text.isdigit() and len(text) > 1 else []
