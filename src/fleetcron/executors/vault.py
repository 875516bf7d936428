"""Where a worker finds secrets: files in a folder, and variables of its environment. Read anew for every attempt, so
that a secret can be changed without a restart.

`FOLDER/TENANT/NAME` is a secret of a tenant. The tenant `default` has also `FOLDER/NAME` and the variables
`FLEETCRON_SECRET_NAME` and `FLEETCRON_SECRET_NAME_FILE`. Other tenants have no variables: two names of tenants could
become the same variable, and one of them would get at the secrets of the other.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from stat import S_ISREG
from typing import Final

from fleetcron.model.tenant import DEFAULT_TENANT

PREFIX: Final = "FLEETCRON_SECRET_"
LARGEST: Final = 64 * 1024


class SecretMissing(Exception):
    """There is no such secret here; the text says what to do, and never what is in another."""


class Vault:
    def __init__(self, folder: str | None = None, environment: Mapping[str, str] | None = None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._environment = {} if environment is None else environment

    def read(self, tenant: str, name: str) -> str:
        """The secret, without the newline at the end of its file."""
        for path in self._paths(tenant, name):
            if (content := _content(path, name)) is not None:
                return content
        if tenant == DEFAULT_TENANT and (value := self._environment.get(variable_of(name))):
            return value
        raise SecretMissing(f"this worker has no secret {name} of the tenant {tenant}: {self._advice(tenant, name)}")

    def _paths(self, tenant: str, name: str) -> list[Path]:
        found = [] if self._folder is None else [self._folder / tenant / name]
        if tenant == DEFAULT_TENANT:
            found += [] if self._folder is None else [self._folder / name]
            if file := self._environment.get(f"{variable_of(name)}_FILE"):
                found.append(Path(file))
        return found

    def _advice(self, tenant: str, name: str) -> str:
        place = f"<secrets.folder>/{tenant}/{name}" if self._folder is None else f"{self._folder}/{tenant}/{name}"
        written = f"write it to {place}"
        unset = " (the setting secrets.folder is not set)" if self._folder is None else ""
        return f"{written}{unset}" + (f", or set {variable_of(name)}" if tenant == DEFAULT_TENANT else "")


def variable_of(name: str) -> str:
    """`shop-token` is FLEETCRON_SECRET_SHOP_TOKEN."""
    return PREFIX + re.sub(r"[^A-Z0-9]", "_", name.upper())


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """What the processes of handlers inherit."""
    return {name: value for name, value in environment.items() if not name.startswith(PREFIX)}


def _content(path: Path, name: str) -> str | None:
    """None: there is no such file, and the next place is asked. One that may be there and cannot be read (the folder of
    another user, a share that does not answer) is an error: the next place could have an older secret."""
    try:
        about = path.stat()
        if not S_ISREG(about.st_mode):
            return None
        if about.st_size > LARGEST:
            raise SecretMissing(f"the secret {name} is larger than {LARGEST // 1024} KiB: {path}")
        text = path.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SecretMissing(f"the secret {name} cannot be read: {path}: {error.strerror}") from None
    except UnicodeDecodeError:  # its text would show some of the bytes
        raise SecretMissing(f"the secret {name} is not UTF-8: {path}") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise SecretMissing(f"the secret {name} is empty: {path}")
    return text
