"""Sound to words: recognised per device, timed by forced alignment, given to who said them.

Siblings (`capture`, `sync`, `geometry`) are not known here: what comes in is sound with its place
on the session clock, what goes out is a `synorama.records.Transcript`.
"""

from __future__ import annotations

from synorama.speech.sound import DeviceSound, from_samples, read_device
from synorama.speech.store import WindowStore
from synorama.speech.transcribe import Asked, transcribe

__all__ = ["Asked", "DeviceSound", "WindowStore", "from_samples", "read_device", "transcribe"]
