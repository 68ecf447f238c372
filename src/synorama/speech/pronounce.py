"""How English words sound, in the phones of CMU's dictionary, also words that no dictionary has."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from synorama.speech.numbers_en import spoken_forms

__all__ = ["pronunciations", "spelled"]

Lookup = Callable[[str], "str | None"]
"""Returns a word's phones, separated by blanks, or None."""

LETTER_NAMES = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz",
        [
            "EY",
            "B IY",
            "S IY",
            "D IY",
            "IY",
            "EH F",
            "JH IY",
            "EY CH",
            "AY",
            "JH EY",
            "K EY",
            "EH L",
            "EH M",
            "EH N",
            "OW",
            "P IY",
            "K Y UW",
            "AA R",
            "EH S",
            "T IY",
            "Y UW",
            "V IY",
            "D AH B AH L Y UW",
            "EH K S",
            "W AY",
            "Z IY",
        ],
        strict=True,
    )
)
# Longest first; the common reading of each, which an aligner follows well enough.
GRAPHEMES = (
    ("tion", "SH AH N"),
    ("sion", "ZH AH N"),
    ("ough", "AO"),
    ("eigh", "EY"),
    ("tch", "CH"),
    ("igh", "AY"),
    ("sch", "S K"),
    ("dge", "JH"),
    ("ch", "CH"),
    ("sh", "SH"),
    ("th", "TH"),
    ("ph", "F"),
    ("wh", "W"),
    ("ck", "K"),
    ("qu", "K W"),
    ("ng", "NG"),
    ("kn", "N"),
    ("wr", "R"),
    ("ee", "IY"),
    ("ea", "IY"),
    ("ie", "IY"),
    ("ei", "EY"),
    ("ey", "IY"),
    ("ai", "EY"),
    ("ay", "EY"),
    ("oa", "OW"),
    ("oo", "UW"),
    ("ou", "AW"),
    ("ow", "OW"),
    ("oi", "OY"),
    ("oy", "OY"),
    ("au", "AO"),
    ("aw", "AO"),
    ("ew", "UW"),
    ("ue", "UW"),
    ("ar", "AA R"),
    ("er", "ER"),
    ("ir", "ER"),
    ("or", "AO R"),
    ("ur", "ER"),
    ("ce", "S EH"),
    ("ci", "S IH"),
    ("cy", "S IY"),
    ("ge", "JH EH"),
    ("x", "K S"),
    ("a", "AE"),
    ("b", "B"),
    ("c", "K"),
    ("d", "D"),
    ("e", "EH"),
    ("f", "F"),
    ("g", "G"),
    ("h", "HH"),
    ("i", "IH"),
    ("j", "JH"),
    ("k", "K"),
    ("l", "L"),
    ("m", "M"),
    ("n", "N"),
    ("o", "OW"),
    ("p", "P"),
    ("q", "K"),
    ("r", "R"),
    ("s", "S"),
    ("t", "T"),
    ("u", "AH"),
    ("v", "V"),
    ("w", "W"),
    ("y", "IY"),
    ("z", "Z"),
)
ENDINGS = (("'s", "Z"), ("s'", "Z"), ("'ll", "L"), ("'d", "D"), ("s", "Z"), ("ed", "D"))
LETTERS = re.compile(r"[a-z']+|\d+")


def pronunciations(token: str, lookup: Lookup) -> tuple[str, ...]:
    """Return the ways a written word may sound; none where it has no sound, such as a dash.

    Parameters
    ----------
    token
        A word with its punctuation, digits and signs.
    lookup
        The dictionary.
    """
    text = _plain(token)
    forms = spoken_forms(text.strip(".,;:!?-'\"()"))
    if forms:
        return tuple(" ".join(_word(w, lookup) for w in form) for form in forms)
    parts = LETTERS.findall(text)
    whole = " ".join(sound for part in parts if (sound := _part(part, lookup)))
    if not whole:
        return ()
    letters = re.sub(r"[^A-Za-z]", "", token)
    initials = len(letters) in (2, 3, 4) and letters.isupper() and lookup(letters.lower()) is None
    return (" ".join(LETTER_NAMES[c] for c in letters.lower()),) if initials else (whole,)


def _plain(token: str) -> str:
    """Return lower-case text without accents."""
    split = unicodedata.normalize("NFKD", token.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))
    return "".join(c for c in split if not unicodedata.combining(c)).lower()


def _part(part: str, lookup: Lookup) -> str:
    if part.isdigit():
        forms = spoken_forms(part)
        return " ".join(_word(w, lookup) for w in forms[0]) if forms else ""
    word = part.strip("'")
    return _word(word, lookup) if word else ""


def _word(word: str, lookup: Lookup) -> str:
    if found := lookup(word):
        return found
    for ending, sound in ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 1 and (found := lookup(stem)):
            return f"{found} {sound}"
    return spelled(word)


def spelled(word: str) -> str:
    """Return the phones of a word that no dictionary has, from its letters."""
    rest = re.sub(r"[^a-z]", "", word)
    if len(rest) > 3 and rest.endswith("e") and rest[-2] not in "aeiou":
        rest = rest[:-1]  # silent
    rest = re.sub(r"(.)\1", lambda m: m[0] if m[1] in "eo" else m[1], rest)
    sounds = []
    while rest:
        letters, sound = next(g for g in GRAPHEMES if rest.startswith(g[0]))
        sounds.append(sound)
        rest = rest[len(letters) :]
    return " ".join(sounds)
