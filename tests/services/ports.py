"""Free ports on the loopback interface."""

import random
import socket

# Below the range from which Linux takes the ports of outgoing connections (32768 and up): between the moment we look
# and the moment the server binds, no client can take the port.
RANGE = range(20_000, 30_000)


def free_port() -> int:
    for port in random.sample(RANGE, k=200):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("200 ports between 20000 and 30000 were tried on 127.0.0.1 and all are taken")
