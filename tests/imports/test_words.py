"""A line into words, next to the real shell."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcron.imports.words import NeedsShell, Words, words

PIECES = st.sampled_from(
    ["a", "b=1", " ", "  ", "\t", "'", '"', "\\", "#", "x y", "{}", "-n", "$HOME", "`", "*", "ü", "=", "~", "!", ";",
     "'a b'", '"c d"', "\\ ", '\\"', "\\\\", '"\\$"', "2>&1", "[", "]", "%", "{a,b}", "@", ":", ","]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=8).map("".join))
def test_the_shell_splits_alike(line: str) -> None:
    try:
        ours = words(f"program {line}")
    except NeedsShell:
        return
    script = f"set -- program {line}\nprintf '%s\\0' \"$@\""
    shell = subprocess.run(
        ["/bin/sh", "-c", script], capture_output=True, check=True, env={"HOME": "/nowhere"}, cwd="/"
    )
    assert list(ours.argv) == shell.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize(
    ("line", "argv", "env"),
    [
        ("/bin/backup --full", ["/bin/backup", "--full"], []),
        ("A=1 B='x y' prog", ["prog"], [("A", "1"), ("B", "x y")]),
        ("prog A=1", ["prog", "A=1"], []),
        ("'A'=1 prog", ["A=1", "prog"], []),
        ("find /tmp -name '*.x' -exec rm {} \\;", ["find", "/tmp", "-name", "*.x", "-exec", "rm", "{}", ";"], []),
        ("prog # a comment", ["prog"], []),
        ("prog a#b", ["prog", "a#b"], []),
        ("[ -x /bin/sh ]", ["[", "-x", "/bin/sh", "]"], []),
    ],
)
def test_lines_without_a_shell(line: str, argv: list[str], env: list[tuple[str, str]]) -> None:
    assert words(line) == Words(tuple(argv), tuple(env))


@pytest.mark.parametrize(
    "line",
    ["a | b", "a && b", "a; b", "a > f", "a < f", "a &", "echo $HOME", 'echo "$HOME"', "echo `date`", "ls *.txt",
     "ls ~", "cd /srv", "export A=1", "( a )", "{ a; }", "if true; then a; fi", "a 'b", 'a "b', "a \\", "", "A=1",
     "echo 'a\\tb'", "! a", "rm {a,b}", "time a", "a\nb"],
)  # fmt: skip
def test_lines_that_need_a_shell(line: str) -> None:
    with pytest.raises(NeedsShell):
        words(line)
