from pathlib import Path

from tests.services.prometheus import Promtool

RULES = """
groups:
  - name: fleetcron
    rules:
      - alert: TicksMissed
        expr: {expression}
"""


def test_promtool_accepts_good_rules(promtool: Promtool, tmp_path: Path) -> None:
    (tmp_path / "good.yml").write_text(RULES.format(expression="rate(fleetcron_ticks_missed_total[5m]) > 0"))
    answer = promtool.run(tmp_path, "check", "rules", "good.yml")
    assert answer.returncode == 0, answer.stdout
    assert "1 rules found" in answer.stdout


def test_promtool_refuses_bad_rules(promtool: Promtool, tmp_path: Path) -> None:
    (tmp_path / "bad.yml").write_text(RULES.format(expression="rate(fleetcron_ticks_missed_total[5m)"))
    answer = promtool.run(tmp_path, "check", "rules", "bad.yml")
    assert answer.returncode != 0
    assert "parse error" in answer.stdout
