"""The codes of faults that executors make up themselves; `retry_on` and `give_up_on` of a job name them.

Besides these a fault has the name of the exception that a Python function raised, such as `shop.errors.Broken`.
docs/learn/handlers.md shows the same.
"""

import re
from collections.abc import Mapping
from typing import Final

CODES: Final[Mapping[str, str]] = {
    "timeout": "the attempt took longer than the job's timeout and was stopped",
    "give_up": "the handler raised GiveUp: trying again is no use",
    "bad_payload": "the payload does not fit the type that the function says it takes",
    "retry": "the handler raised Retry; it is tried again when that says, or after the job's backoff",
    "result_too_large": "what the function returned is more than 64 KiB of JSON",
    "result_not_json": "what the function returned cannot be written as JSON",
    "host_died": "the process that ran the function ended: a crash, os._exit, or out of memory",
    "host_replaced": "another function in the same process did not stop and had to be killed, and this one with it",
    "host_start_failed": "the process that runs functions could not be started",
    "worker_stopped": "the worker was stopped before the attempt had ended; this costs neither a failure nor a loss, "
    "and it is tried again a second later",
    "overdue": "the worker stood still longer than its lease, and everything that it had started was killed",
    "exit_N": "the command ended with the exit code N",
    "signal_N": "the command was ended by the signal N",
    "not_found": "there is no such program, or no such working directory, on this worker",
    "not_executable": "the program is there, but cannot be run",
    "not_started": "the machine had no room for another process",
    "supervisor_died": "the process that watches over the command ended",
    "http_N": "the answer had the status N",
    "address_refused": "the address is private, or otherwise not for jobs, and the operator has not allowed it",
    "name_not_found": "the name of the host has no address",
    "connection_failed": "no connection, or it broke",
    "tls_failed": "the certificate or the encryption was not right",
    "too_many_redirects": "the answer led to another address more than five times",
    "secret_missing": "the job names a secret that this worker does not have, or cannot read",
    "bad_request": "the request cannot be sent: its address or headers are not valid",
}

_NO_USE: Final = frozenset(
    {"give_up", "bad_payload", "result_too_large", "result_not_json", "address_refused", "bad_request"}
)
# Of the answers that blame the request, those that may be different the next time.
_PASSING: Final = frozenset({"http_408", "http_425", "http_429"})


def is_permanent(code: str) -> bool:
    """Is trying again no use, unless the job's `retry_on` names this code?"""
    return code in _NO_USE or bool(re.fullmatch(r"http_4\d\d", code) and code not in _PASSING)
