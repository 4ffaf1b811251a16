"""Hosts in network namespaces of this machine, each behind a link of limited bandwidth; needs Linux and root.

``sudo python -m dev.links 100mbit`` sets three of them up, measures what a link carries, and removes them again.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

_NAME = "anabranch"
_NETWORK = "10.213.77"
_MEASURED_BYTES = 1 << 26


class LinksMissing(Exception):
    """Namespaces cannot be made here, or links not be limited."""


@dataclass(frozen=True)
class Links:
    """Network namespaces on a bridge: what a host sends, and what it gets, is limited to `rate`.

    As a context manager it removes them when the block ends. The machine itself is on the bridge too, unlimited.

    Parameters
    ----------
    n_hosts
        Namespaces.
    rate
        As `tc` reads it: 1gbit, 100mbit.
    """

    n_hosts: int = 3
    rate: str = "1gbit"

    @property
    def gateway(self) -> str:
        """The machine's own address."""
        return f"{_NETWORK}.1"

    @property
    def hosts(self) -> list[str]:
        """Addresses of the hosts."""
        return [f"{_NETWORK}.{number}" for number in range(2, 2 + self.n_hosts)]

    def command(self, host: str) -> list[str]:
        """What runs a command on a host, to be put before it; nothing for the machine itself."""
        return [] if host == self.gateway else ["ip", "netns", "exec", _namespace(host)]

    def __enter__(self) -> Links:
        try:
            _run(f"ip link add {_NAME} type bridge")
            _run(f"ip addr add {self.gateway}/24 dev {_NAME}")
            _run(f"ip link set {_NAME} up")
            for host in self.hosts:
                self._connect(host)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for host in self.hosts:
            # The system would remove it with the namespace, but not at once.
            subprocess.run(["ip", "link", "del", _outside(host)], stderr=subprocess.DEVNULL, check=False)
            subprocess.run(["ip", "netns", "del", _namespace(host)], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["ip", "link", "del", _NAME], stderr=subprocess.DEVNULL, check=False)

    def _connect(self, host: str) -> None:
        namespace, outside = _namespace(host), _outside(host)
        _run(f"ip netns add {namespace}")
        _run(f"ip link add {outside} type veth peer name eth0 netns {namespace}")
        _run(f"ip link set {outside} master {_NAME} up")
        _run(f"ip -n {namespace} addr add {host}/24 dev eth0")
        for device in ("lo", "eth0"):
            _run(f"ip -n {namespace} link set {device} up")
        # What goes into the namespace leaves by the outer end, so that a limit on each end limits both ways.
        limit = f"root tbf rate {self.rate} burst 256kb latency 100ms"
        _run(f"tc qdisc add dev {outside} {limit}")
        _run(f"tc -n {namespace} qdisc add dev eth0 {limit}")

    def measured(self) -> float:
        """Bits a second that the first host sends to the second one."""
        sender, receiver = self.hosts[:2]
        script = (
            "import socket, time\n"
            f"server = socket.create_server(({receiver!r}, 7077))\nprint('ready', flush=True)\n"
            "peer = server.accept()[0]\nbegan, n = time.perf_counter(), 0\n"
            "while data := peer.recv(1 << 20): n += len(data)\nprint(8 * n / (time.perf_counter() - began))"
        )
        listening = subprocess.Popen(
            [*self.command(receiver), sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
        )
        assert listening.stdout is not None
        try:
            listening.stdout.readline()
            sending = f"import socket; socket.create_connection(({receiver!r}, 7077)).sendall(bytes({_MEASURED_BYTES}))"
            subprocess.run([*self.command(sender), sys.executable, "-c", sending], check=True, timeout=60)
            return float(listening.stdout.readline())
        finally:
            listening.kill()
            listening.wait()


def _namespace(host: str) -> str:
    return f"{_NAME}-{host.rpartition('.')[2]}"


def _outside(host: str) -> str:
    return f"{_NAME}{host.rpartition('.')[2]}"


def _run(command: str) -> None:
    try:
        done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise LinksMissing(f"{error.filename} is not installed; it comes with iproute2") from None
    if done.returncode:
        raise LinksMissing(f"{command}: {done.stderr.strip()}; it needs Linux and root")


if __name__ == "__main__":
    with Links(rate=sys.argv[1] if len(sys.argv) > 1 else "1gbit") as links:
        print(f"{links.rate}: {links.measured() / 1e6:.0f} Mb/s from host to host")
