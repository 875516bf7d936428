"""Which addresses HTTP jobs may reach. Pure.

Tenants write URLs; the worker stands inside the operator's network. So an address must be public, or the operator must
have named it. A name is judged by every address that it has, and an IPv6 address that carries an IPv4 one by that.
"""

import ipaddress
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NOT_PUBLIC_4 = {
    IPv4Network("0.0.0.0/8"): "this host",
    IPv4Network("10.0.0.0/8"): "private",
    IPv4Network("100.64.0.0/10"): "behind a carrier's NAT",
    IPv4Network("127.0.0.0/8"): "loopback",
    IPv4Network("169.254.0.0/16"): "link-local",  # where clouds answer questions about credentials
    IPv4Network("172.16.0.0/12"): "private",
    IPv4Network("192.0.0.0/24"): "reserved",
    IPv4Network("192.0.2.0/24"): "for documentation",
    IPv4Network("192.88.99.0/24"): "a relay",
    IPv4Network("192.168.0.0/16"): "private",
    IPv4Network("198.18.0.0/15"): "for benchmarks",
    IPv4Network("198.51.100.0/24"): "for documentation",
    IPv4Network("203.0.113.0/24"): "for documentation",
    IPv4Network("224.0.0.0/4"): "multicast",
    IPv4Network("240.0.0.0/4"): "reserved",
}
# Of IPv6 only global unicast is public, and of that not these.
_PUBLIC_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = {
    IPv6Network("2001::/23"): "reserved",  # Teredo and its neighbours
    IPv6Network("2001:db8::/32"): "for documentation",
    IPv6Network("2002::/16"): "a tunnel to IPv4",
    IPv6Network("3fff::/20"): "for documentation",
}
_CARRIES_4 = (IPv6Network("::ffff:0:0/96"), IPv6Network("::/96"), IPv6Network("64:ff9b::/96"))


class AddressRefused(Exception):
    """The text says which address, and why."""


class AddressRules:
    """`internal`: host names, `*.domains`, addresses and networks that the operator allows."""

    def __init__(self, internal: Sequence[str]) -> None:
        self._networks: list[Network] = []
        self._names: set[str] = set()
        self._domains: list[str] = []
        for entry in internal:
            try:
                self._networks.append(ipaddress.ip_network(entry.strip("[]"), strict=False))
            except ValueError:
                name = _plain(entry)
                if name.startswith("*."):
                    self._domains.append(name[1:])
                else:
                    self._names.add(name)

    def check(self, host: str, address: str) -> None:
        """Raises AddressRefused."""
        if self._is_named(host):
            return
        reason = self._wrong(_judged(ipaddress.ip_address(address.partition("%")[0])))
        if reason is not None:
            which = address if host == address else f"{address} (of {host})"
            raise AddressRefused(f"{which} is {reason}; the operator can allow it in executor.internal")

    def check_literal(self, host: str) -> None:
        """A host that is written as an address never comes to a resolver."""
        try:
            ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            return
        self.check(host, host)

    def _is_named(self, host: str) -> bool:
        name = _plain(host)
        return name in self._names or any(name.endswith(domain) for domain in self._domains)

    def _wrong(self, address: Address) -> str | None:
        if any(address in network for network in self._networks if network.version == address.version):
            return None
        if isinstance(address, IPv4Address):
            return next((why for network, why in _NOT_PUBLIC_4.items() if address in network), None)
        if address not in _PUBLIC_6:
            return "not public"
        return next((why for network, why in _NOT_PUBLIC_6.items() if address in network), None)


def _judged(address: Address) -> Address:
    """The IPv4 address inside, if there is one: that is where the packets go."""
    if isinstance(address, IPv6Address) and any(address in network for network in _CARRIES_4):
        inside = int(address) & 0xFFFFFFFF
        return IPv4Address(inside) if inside > 1 else address  # :: and ::1 are themselves
    return address


def _plain(host: str) -> str:
    return host.rstrip(".").lower()
