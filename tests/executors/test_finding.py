"""Modules and functions that do not like to be looked at: finding says why, and never raises."""

from pathlib import Path

import pytest

from fleetcron.executors.handlers import Handlers

_UNSPEAKABLE = "class Odd(Exception):\n    def __str__(self): raise SystemExit('x')\n"

_RUDE = "def __signature__(self): raise SystemExit(1)"


@pytest.mark.parametrize(
    ("module", "text", "reason"),
    [
        ("shop_plain", "1 / 0", "shop_plain cannot be imported: ZeroDivisionError: division by zero"),
        (
            "shop_speechless",
            f"{_UNSPEAKABLE}raise Odd()",
            "shop_speechless cannot be imported: shop_speechless.Odd (its text cannot be shown)",
        ),
        (
            "shop_lazy",
            "def __getattr__(name): import no_such_shop",
            "shop_lazy:work cannot be used: ModuleNotFoundError: No module named 'no_such_shop'",
        ),
        (
            "shop_veiled",
            f"class Work:\n    __call__ = print\n    @property\n    {_RUDE}\nwork = Work()",
            "shop_veiled:work cannot be used: SystemExit: 1",
        ),
    ],
)
def test_whatever_a_module_does_it_is_a_reason(
    module: str, text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    handlers = Handlers((module,))
    assert handlers.find(f"{module}:work") == reason
    assert handlers.get(f"{module}:work") is None
