"""Every format gives back the words that it was given, and says what breaks a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synorama.errors import InputNotFoundError, TranscriptFormatError, UsageError
from synorama.records import Transcript, Word
from synorama.speech.formats import FORMATS, format_of, read_words, written
from synorama.speech.merge import segments_of

ZERO_NS = 280_591_693_600_123
WITHOUT_SPEAKERS = ("aria",)
WORD_BY_WORD = tuple(name for name in FORMATS if name != "srt-utterances")

texts = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp", "Cn", "Co"]),
    min_size=1,
    max_size=12,
).filter(lambda t: t.strip() == t and not t.isspace() and "-->" not in t and "\\" not in t)
plain = st.sampled_from(
    ["Hello,", "don't", "a<b", '"so"', "1,962", "été", "x:", "no?", "&amp;", "Note:", "你好", "<x>"]
)
speakers = st.sampled_from(["P01", "leader", "P 02", None])


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    words: list[Word] = []
    for speaker in draw(st.sets(speakers, min_size=1)):
        at = ZERO_NS + draw(st.integers(0, 10**10))
        for _ in range(draw(st.integers(1, 8))):
            start = at + draw(st.sampled_from([0, 1_000_000, 40_000_000, 3_000_000_000]))
            at = start + draw(st.integers(2_000_000, 900_000_000))
            probability = draw(st.none() | st.floats(0, 1).map(lambda p: round(p, 4)))
            words.append(Word(draw(plain), start, at, probability, speaker, "leader", "attention"))
    words.sort(key=lambda w: (w.start_ns, w.end_ns))
    return Transcript(tuple(words), segments_of(words), "en")


def order(word: Word) -> tuple[str, int]:
    return word.speaker or "", word.start_ns or 0


@pytest.mark.parametrize("name", WORD_BY_WORD)
@given(transcript=transcripts())
@settings(max_examples=25, deadline=None)
def test_words_come_back_within_a_millisecond(name: str, transcript: Transcript) -> None:
    if name == "elan":
        pytest.importorskip("pympi", reason="the extra 'speech' is not installed")
    found = FORMATS[name].read(written(transcript, name, zero_ns=ZERO_NS), ZERO_NS)
    assert len(found) == len(transcript.words)
    if name in WITHOUT_SPEAKERS:
        pairs = zip(found, transcript.words, strict=True)
    else:
        pairs = zip(sorted(found, key=order), sorted(transcript.words, key=order), strict=True)
    for word, given_word in pairs:
        assert word.text == given_word.text
        assert abs((word.start_ns or 0) - (given_word.start_ns or 0)) <= 1_000_000
        assert abs((word.end_ns or 0) - (given_word.end_ns or 0)) <= 1_000_000
        if name not in WITHOUT_SPEAKERS:
            assert word.speaker == given_word.speaker


@pytest.mark.parametrize("name", ["json", "csv", "vtt", "textgrid"])
@given(text=texts)
@settings(max_examples=40, deadline=None)
def test_any_text_survives(name: str, text: str) -> None:
    word = Word(text, ZERO_NS, ZERO_NS + 500_000_000, None, "P01")
    transcript = Transcript((word,), segments_of([word]))
    (found,) = FORMATS[name].read(written(transcript, name, zero_ns=ZERO_NS), ZERO_NS)
    assert found.text == text


@pytest.mark.parametrize("name", ["json", "csv"])
def test_nothing_is_lost_in_formats_that_hold_all(name: str) -> None:
    words = (
        Word("so", 5, 9, 0.25, "P01", "leader", "pocketsphinx", overlapped=True),
        Word("far", None, None, None, None, "helper", "attention"),
    )
    found = FORMATS[name].read(written(Transcript(words), name), 0)
    assert tuple(found) == words


def test_subtitles_by_utterance_read_well_and_share_their_time() -> None:
    words = (
        Word("Pass", 0, 10**9, 0.9, "P01", "d"),
        Word("it.", 10**9, 2 * 10**9, 0.9, "P01", "d"),
    )
    data = written(Transcript(words, segments_of(words)), "srt-utterances")
    assert data.decode() == "1\n00:00:00,000 --> 00:00:02,000\nP01: Pass it.\n"
    found = FORMATS["srt"].read(data, 0)
    assert [w.text for w in found] == ["Pass", "it."]
    assert {w.timing_source for w in found} == {"spread"}


def test_webvtt_names_the_voice() -> None:
    words = (
        Word("Pass", 0, 10**9, 0.9, "P01", "d"),
        Word("it.", 10**9, 2 * 10**9, 0.9, "P01", "d"),
    )
    data = written(Transcript(words, segments_of(words)), "vtt").decode()
    assert data.startswith("WEBVTT\n\n00:00:00.000 --> 00:00:02.000\n<v P01>Pass ")


def test_what_subtitle_editors_do_to_a_file_is_read() -> None:
    edited = (
        "\ufeff7\r\n00:00:01,5 --> 0:02,250 X1:40\r\n<i>P01: Hello</i>\r\n\r\n"
        "9\r\n00:00:03.000 --> 00:00:04.000\r\nP02: two\r\nlines\r\n\r\n\r\n"
    ).encode()
    found = FORMATS["srt"].read(edited, 0)
    assert [(w.text, w.speaker) for w in found] == [
        ("Hello", "P01"),
        ("two", "P02"),
        ("lines", "P02"),
    ]
    assert found[0].start_ns == 1_500_000_000


def test_a_colon_is_no_name_where_cues_have_none() -> None:
    cues = "".join(
        f"{k}\n00:00:0{k},000 --> 00:00:0{k},900\n{text}\n\n"
        for k, text in enumerate(["so", "Note: this", "is", "all"], start=1)
    )
    assert {w.speaker for w in FORMATS["srt"].read(cues.encode(), 0)} == {None}


def test_textgrids_of_praat_are_read_in_utf16_and_short_form() -> None:
    short = (
        'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n2\n<exists>\n2\n'
        '"IntervalTier"\n"P01"\n0\n2\n2\n0\n1\n"say ""so"""\n1\n2\n""\n'
        '"TextTier"\n"clicks"\n0\n2\n1\n1.5\n"click"\n'
    )
    found = FORMATS["textgrid"].read(short.encode("utf-16"), 0)
    assert [(w.text, w.speaker) for w in found] == [("say", "P01"), ('"so"', "P01")]


def test_real_elan_files_are_read(shared_data: Path) -> None:
    pytest.importorskip("pympi", reason="the extra 'speech' is not installed")
    words = read_words(shared_data / "6_labels" / "pympi" / "sample_2.7.eaf")
    assert len(words) > 5_000
    assert len({w.speaker for w in words}) > 1


def test_real_speech_tables_of_aria_are_read(shared_data: Path) -> None:
    (path,) = shared_data.glob("1_vrs/**/speech.csv")
    words = read_words(path)
    assert words[0].text == "and"
    assert words[0].start_ns == 101_217_000_000
    again = FORMATS["aria"].read(written(Transcript(words), "aria"), 0)
    assert tuple(again) == words


@pytest.mark.parametrize(
    ("name", "data", "where"),
    [
        ("json", b"{}", "JSON"),
        ("json", b"\xff\xfe\x00", "UTF-8|JSON"),
        ("csv", b"a,b\n1,2\n", "no column 'start_ns'"),
        ("csv", b"start_ns,end_ns,text\n1.5,2,so\n", "line 2"),
        ("aria", b"startTime_ns,endTime_ns,written\nx,2,so\n", "line 2"),
        ("srt", b"1\n00:00:01,000 -> 00:00:02,000\nso\n\n2\n0 --> 1\nso\n", "line 6"),
        ("srt", b"1\n00:00:03,000 --> 00:00:02,000\nso\n", "ends before"),
        ("vtt", b"1\n00:00:01.000 --> 00:00:02.000\nso\n", "WEBVTT"),
        ("textgrid", b"hello", "TextGrid"),
        ("textgrid", b'"ooTextFile" "TextGrid" 0 1 <exists> 1 "IntervalTier" "a" 0 1 9 0', "tier"),
        ("elan", b"<ANNOTATION_DOCUMENT", "ELAN"),
    ],
)
def test_broken_files_are_refused_with_the_place(
    tmp_path: Path, name: str, data: bytes, where: str
) -> None:
    if name == "elan":
        pytest.importorskip("pympi", reason="the extra 'speech' is not installed")
    path = tmp_path / "transcript"
    path.write_bytes(data)
    with pytest.raises(TranscriptFormatError, match=where) as caught:
        read_words(path, name)
    assert caught.value.path == str(path)


def test_names_of_files_tell_the_format() -> None:
    assert format_of(Path("a.SRT")) == "srt"
    assert format_of(Path("a.TextGrid")) == "textgrid"
    assert format_of(Path("speech.csv")) == "aria"
    assert format_of(Path("words.csv")) == "csv"
    with pytest.raises(UsageError, match="does not tell"):
        format_of(Path("a.docx"))
    with pytest.raises(UsageError, match="no format 'word'"):
        format_of(Path("a.srt"), "word")


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError):
        read_words(tmp_path / "none.srt")
