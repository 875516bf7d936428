"""The names of jobs, tenants, pools and calendars, and the labels that people give to types."""

import re
from typing import Final

NAME: Final = r"^[a-z0-9][a-z0-9._-]{0,199}$"
NAME_HINT: Final = "small letters, digits, dots, dashes and underscores, 200 at most, a letter or digit first"
LABEL_HINT: Final = "one line of 1 to 200 characters, none of them a control character"
_NAME = re.compile(NAME)
_LABEL = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,200}")


def is_name(text: object) -> bool:
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def is_label(text: object) -> bool:
    """What `type` of a job may be."""
    return isinstance(text, str) and _LABEL.fullmatch(text) is not None
