"""Two network namespaces, joined by a virtual cable, a server in the one, and what its process says of it."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import time

SERVER, CLIENT, NOBODY = "192.0.2.1", "192.0.2.2", "192.0.2.99"


class Namespaces:
    """Two namespaces of one user namespace; they end with the processes that hold them."""

    def __init__(self, stack):
        hold = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.server = stack.enter_context(subprocess.Popen(
            ["unshare", "-Urn", "sh", "-c", "echo; exec cat"], **hold))
        self.server.stdout.readline()
        self.client = stack.enter_context(subprocess.Popen(
            self.inside(self.server, "unshare", "-n", "sh", "-c", "echo; exec cat"), **hold))
        self.client.stdout.readline()
        for holder in (self.server, self.client):
            stack.callback(holder.kill)
        self.run(self.server, "ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth1",
                 "netns", str(self.client.pid))
        for holder, device, address in ((self.server, "veth0", SERVER), (self.client, "veth1", CLIENT)):
            self.run(holder, "ip", "link", "set", "lo", "up")
            self.run(holder, "ip", "address", "add", address + "/24", "dev", device)
            self.run(holder, "ip", "link", "set", device, "up")
        self.run(self.server, "ip", "route", "add", "10.0.0.0/8", "via", CLIENT)
        # The forged addresses are the client's own; the address without a host is at the server's end.
        self.run(self.client, "ip", "route", "add", "local", "10.0.0.0/8", "dev", "lo")
        self.run(self.client, "ip", "neighbour", "add", NOBODY, "lladdr", "02:00:00:00:00:99", "dev",
                 "veth1", "nud", "permanent")

    @staticmethod
    def inside(holder, *command):
        return ["nsenter", "-t", str(holder.pid), "-U", "-n", "--preserve-credentials", *command]

    def run(self, holder, *command):
        subprocess.run(self.inside(holder, *command), check=True)


def memory(pid, key):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{key}:\s+(\d+) kB", text).group(1)) / 1024


def dropped(spaces):
    """Datagrams that found the queue of the server's socket full."""
    rows = subprocess.run(spaces.inside(spaces.server, "cat", "/proc/net/udp"), check=True,
                          capture_output=True, text=True).stdout.splitlines()[1:]
    return sum(int(row.split()[-1]) for row in rows)


def processor(pid):
    """Seconds that a process has run in its own code and in the kernel."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in fields[11:13]]


def speaks_dtls13(options):
    """Whether `ebbtide` was built with the feature `dtls13`."""
    helped = subprocess.run([options.ebbtide, "serve", "--help"], capture_output=True, text=True)
    return "--dtls13" in helped.stdout


def prefer(nice):
    """Gives this process and its children another niceness."""
    if nice:
        os.nice(nice)
        # Linux weighs sessions against each other, not processes, where it groups them.
        with contextlib.suppress(OSError):
            pathlib.Path("/proc/self/autogroup").write_text(str(nice))


def serve(stack, spaces, options, arguments, responder=None):
    core = ["taskset", "-c", "0"] if os.cpu_count() > 1 else []
    command = [responder, "5683", SERVER] if responder else [
        options.ebbtide, "serve", "--bind", f"{SERVER}:5683", *arguments]
    if getattr(options, "gateway", False):
        behind = stack.enter_context(subprocess.Popen(
            spaces.inside(spaces.server, *core, options.ebbtide, "serve", "--bind", "127.0.0.1:5683"), stdout=subprocess.PIPE))
        stack.callback(behind.kill)
        behind.stdout.readline()
        command[1:4] = ["proxy", "--backend", "/=coap://127.0.0.1:5683/", "--bind", f"{SERVER}:5683"]
    server = stack.enter_context(subprocess.Popen(
        spaces.inside(spaces.server, *core, *command), stdout=subprocess.PIPE, text=True))
    stack.callback(server.kill)
    if responder:
        time.sleep(0.2)
    else:
        server.stdout.readline()
    if server.poll() is not None:
        sys.exit(f"{command[0]} ended at once, with the exit code {server.returncode}")
    return server
