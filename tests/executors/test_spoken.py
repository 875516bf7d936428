"""What a function says is whole, whoever says it and in the middle of what."""

import sys
import threading
from collections import Counter
from itertools import count
from types import FrameType

from fleetcron.executors import outputs, spoken
from fleetcron.executors.spoken import Spoken

PATIENCE_S = 60
HERE = {outputs.__file__, spoken.__file__}


def test_a_finalizer_speaks_in_the_middle_of_anything() -> None:
    """The garbage collector may call one wherever something is allocated; here one speaks at every call inside.
    Nobody waits for itself, and nothing that was said is lost or torn."""
    spoken, texts, said = Spoken(), list[str](), list[str]()

    def finalize(frame: FrameType, event: str, _: object) -> None:
        if event in ("call", "c_call") and frame.f_code.co_filename in HERE:
            speak(f"unclosed {len(said)}")

    def speak(line: str) -> None:
        said.append(line)
        spoken.write(f"{line}\n".encode())

    def work() -> None:
        sys.setprofile(finalize)
        for number in range(100):
            speak(f"line {number}")
            texts.extend(text for _, text, _ in spoken.chunks())
        spoken.end()
        sys.setprofile(None)
        texts.extend(text for _, text, _ in spoken.chunks(ended=True))

    speaker = threading.Thread(target=work, daemon=True)
    speaker.start()
    speaker.join(PATIENCE_S)
    assert not speaker.is_alive(), "it waits for itself"
    assert len(said) > 1_000
    assert Counter("".join(texts).splitlines()) == Counter(said)
    assert spoken.end()[1] == len("".join(texts))


def test_many_threads_speak_while_one_listens() -> None:
    spoken, texts, numbers = Spoken(), list[str](), count()
    speakers = [
        threading.Thread(target=lambda: [spoken.write(f"line {next(numbers)}\n".encode()) for _ in range(2_000)])
        for _ in range(4)
    ]
    for speaker in speakers:
        speaker.start()
    while any(speaker.is_alive() for speaker in speakers):
        texts += [text for _, text, _ in spoken.chunks()]
    texts += [text for _, text, _ in spoken.chunks(ended=True)]
    assert sorted("".join(texts).splitlines()) == sorted(f"line {number}" for number in range(8_000))


def test_who_says_nothing_is_empty() -> None:
    spoken = Spoken()
    assert spoken.is_empty
    spoken.write(b"a")
    assert not spoken.is_empty
