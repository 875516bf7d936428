"""Plain values as YAML that `fleetcron apply` reads back as the same values."""

import re
from typing import Any

import yaml

# What needs no quotes, whoever reads it: YAML has too many words and numbers that are not texts.
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*|[0-9]+(?:ms|s|m|h|d)")
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n", "inf", "nan"))


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True  # a document without anchors is easier to edit


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


_Dumper.add_representer(str, _text)


def dumped(document: object) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=110)
