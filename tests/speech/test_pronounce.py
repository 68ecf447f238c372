from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synorama.speech.numbers_en import spoken_forms
from synorama.speech.pronounce import GRAPHEMES, LETTER_NAMES, pronunciations, spelled

PHONES = {
    p for sounds in [*LETTER_NAMES.values(), *(g[1] for g in GRAPHEMES)] for p in sounds.split()
}


def nothing(word: str) -> str | None:
    return None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("7", "seven"),
        ("21", "twenty one"),
        ("110", "one hundred ten"),
        ("1,024", "one thousand twenty four"),
        ("3.14", "three point one four"),
        ("50%", "fifty percent"),
        ("$5", "five dollars"),
        ("10:30", "ten thirty"),
        ("9:05", "nine oh five"),
        ("2nd", "second"),
        ("20th", "twentieth"),
        ("112th", "one hundred twelfth"),
        ("2000000", "two million"),
    ],
)
def test_numbers_are_said_as_english_says_them(text: str, said: str) -> None:
    assert said in [" ".join(form) for form in spoken_forms(text)]


def test_a_year_may_be_said_in_pairs() -> None:
    forms = [" ".join(form) for form in spoken_forms("1962")]
    assert "nineteen sixty two" in forms
    assert "one thousand nine hundred sixty two" in forms


@pytest.mark.parametrize("text", ["", "kitchen", "1e5", "12ab", "9" * 40, "١٢"])
def test_what_is_no_number_has_no_form_of_one(text: str) -> None:
    assert text.isdigit() or not spoken_forms(text)


@given(st.integers(0, 10**11))
def test_every_number_can_be_said(value: int) -> None:
    assert all(word.isalpha() for word in spoken_forms(str(value))[0])


@given(st.text(max_size=30))
def test_any_token_has_sounds_of_the_dictionary_or_none(token: str) -> None:
    for sounds in pronunciations(token, nothing):
        assert set(sounds.split()) <= PHONES


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12))
def test_every_word_of_letters_sounds(word: str) -> None:
    assert spelled(word)


def test_endings_hang_on_words_of_the_dictionary() -> None:
    words = {"colander": "K AA L AH N D ER"}
    assert pronunciations("Colanders,", words.get) == ("K AA L AH N D ER Z",)
    assert pronunciations("colander's", words.get) == ("K AA L AH N D ER Z",)


def test_signs_without_sound_have_no_pronunciation() -> None:
    assert pronunciations("-", nothing) == ()
    assert pronunciations("...", nothing) == ()
