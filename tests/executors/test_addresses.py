"""Where HTTP jobs may go."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcron.executors.addresses import AddressRefused, AddressRules

NOWHERE = AddressRules(())

PUBLIC = ["93.184.215.14", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "192.169.0.1"]
PUBLIC += ["11.0.0.0", "169.253.1.1", "223.255.255.255", "2606:4700:4700::1111", "2a00:1450:4001::1"]
PUBLIC += ["::ffff:1.1.1.1", "64:ff9b::101:101"]

REFUSED = [
    ("0.0.0.0", "this host"),
    ("0.1.2.3", "this host"),
    ("10.0.0.1", "private"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.168.1.1", "private"),
    ("100.64.0.1", "behind a carrier's NAT"),
    ("100.127.255.255", "behind a carrier's NAT"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("169.254.169.254", "link-local"),
    ("192.0.0.170", "reserved"),
    ("192.0.2.1", "for documentation"),
    ("198.18.0.1", "for benchmarks"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.250", "multicast"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "reserved"),
    ("::", "not public"),
    ("::1", "not public"),
    ("fe80::1", "not public"),
    ("fe80::1%eth0", "not public"),
    ("fc00::1", "not public"),
    ("fd12:3456::1", "not public"),
    ("ff02::1", "not public"),
    ("fec0::1", "not public"),
    ("2001:db8::1", "for documentation"),
    ("2001::1", "reserved"),  # Teredo
    ("2002:7f00:1::", "a tunnel to IPv4"),
    ("::ffff:127.0.0.1", "loopback"),
    ("::ffff:10.1.2.3", "private"),
    ("::ffff:169.254.169.254", "link-local"),
    ("::ffff:100.64.0.1", "behind a carrier's NAT"),
    ("::127.0.0.1", "loopback"),
    ("64:ff9b::127.0.0.1", "loopback"),
    ("64:ff9b::a9fe:a9fe", "link-local"),
    ("64:ff9b:1::1", "not public"),
    ("100::1", "not public"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_fine(address: str) -> None:
    NOWHERE.check("shop.example", address)
    NOWHERE.check_literal(address)


@pytest.mark.parametrize(("address", "reason"), REFUSED)
def test_others_are_not(address: str, reason: str) -> None:
    with pytest.raises(AddressRefused, match=reason):
        NOWHERE.check("shop.example", address)
    with pytest.raises(AddressRefused, match=reason):
        NOWHERE.check_literal(address)


@pytest.mark.parametrize(
    ("entry", "host", "address", "allowed"),
    [
        ("10.1.0.0/16", "db.internal", "10.1.2.3", True),
        ("10.1.0.0/16", "db.internal", "::ffff:10.1.2.3", True),
        ("10.1.0.0/16", "db.internal", "10.2.0.1", False),
        ("10.1.2.3", "10.1.2.3", "10.1.2.3", True),
        ("[fd00::]/8", "db.internal", "10.1.2.3", False),
        ("fd00::/8", "db.internal", "fd00::1", True),
        ("::1", "localhost", "::1", True),
        ("::1", "localhost", "127.0.0.1", False),
        ("db.internal", "db.internal", "10.1.2.3", True),
        ("DB.internal", "db.INTERNAL.", "10.1.2.3", True),
        ("db.internal", "evil-db.internal", "10.1.2.3", False),
        ("db.internal", "db.internal.evil.example", "10.1.2.3", False),
        ("*.svc.local", "a.b.svc.local", "10.1.2.3", True),
        ("*.svc.local", "svc.local", "10.1.2.3", False),
        ("*.svc.local", "evilsvc.local", "10.1.2.3", False),
    ],
)
def test_what_the_operator_allows(entry: str, host: str, address: str, allowed: bool) -> None:
    rules = AddressRules((entry,))
    if allowed:
        rules.check(host, address)
    else:
        with pytest.raises(AddressRefused, match=r"executor\.internal"):
            rules.check(host, address)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_the_same_in_any_dress(address: ipaddress.IPv4Address) -> None:
    """And what Python's own list calls local or private never gets through."""
    if int(address) < 2:
        return

    def is_refused(text: str) -> bool:
        try:
            NOWHERE.check_literal(text)
        except AddressRefused:
            return True
        return False

    plain = is_refused(str(address))
    assert is_refused(f"::ffff:{address}") == plain
    assert is_refused(f"64:ff9b::{address}") == plain
    assert is_refused(f"::{address}") == plain
    if not address.is_global or address.is_multicast:
        assert plain
