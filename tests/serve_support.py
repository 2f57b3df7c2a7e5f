"""What the tests of the query service share: starting it, asking it, certificates, hostile clients."""
import contextlib
import http.client
import json
import re
import socket
import subprocess
import threading
import time
import urllib.parse

import support


class Service:
    """A running `serve` or `train --listen`; ask it with get() and post()."""

    def __init__(self, process, url, stdout, stderr):
        self.process, self.url, self.stdout, self.stderr = process, url, stdout, stderr
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.tls = parts.hostname, parts.port, parts.scheme == "https"

    def connect(self, context=None, source=None):
        if self.tls:
            return http.client.HTTPSConnection(self.host, self.port, timeout=support.TIMEOUT_S, context=context)
        return http.client.HTTPConnection(self.host, self.port, timeout=support.TIMEOUT_S,
                                          source_address=source and (source, 0))

    def ask(self, method, path, body=None, headers=None, context=None, source=None):
        """(status, headers, bytes) of one request on a connection of its own."""
        connection = self.connect(context, source)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, path, expect=200, **parameters):
        query = urllib.parse.urlencode(parameters, doseq=True)
        status, _, body = self.ask("GET", path + ("?" + query if query else ""))
        assert status == expect, (path, parameters, status, body[:500])
        return json.loads(body)

    def post(self, path, value, expect=200):
        status, _, body = self.ask("POST", path, json.dumps(value), {"Content-Type": "application/json"})
        assert status == expect, (path, value, status, body[:500])
        return json.loads(body)

    def socket(self):
        return socket.create_connection((self.host, self.port), timeout=support.TIMEOUT_S)

    def raw(self, request):
        """Everything that comes back until the service closes."""
        with self.socket() as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            return read_all(connection)

    def metric(self, name):
        status, _, body = self.ask("GET", "/metrics")
        assert status == 200
        found = re.search(rf"^{re.escape(name)} (\S+)$", body.decode(), re.MULTILINE)
        return float(found.group(1)) if found else None

    def stop(self):
        self.process.terminate()
        return self.process.wait(support.TIMEOUT_S)


def read_all(connection):
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            received += piece
    return received


def _collect(stream, lines):
    for line in stream:
        lines.append(line.decode(errors="replace"))


@contextlib.contextmanager
def serving(*args, env=None, command="serve"):
    """`serve ARGS` on a free port of 127.0.0.1 (unless ARGS say where), ended afterwards."""
    listen = [] if "--listen" in args else ["--listen", "127.0.0.1:0"]
    process = support.start(command, *args, *listen, env=env)
    out, err = [], []
    for stream, lines in ((process.stdout, out), (process.stderr, err)):
        threading.Thread(target=_collect, args=(stream, lines), daemon=True).start()

    def url():
        return re.search(r"serving (?:\S+ )?at (\S+)", "".join(out + err))
    try:
        support.wait_for(lambda: url() or process.poll() is not None, "the service")
        assert url(), "".join(err)
        yield Service(process, url().group(1).rstrip(","), out, err)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


class Events:
    """A reader of /api/events on a thread of its own."""

    def __init__(self, service, *kinds):
        self.seen = []
        self.connection = service.connect()
        self.connection.request("GET", "/api/events" + ("?" + "&".join(f"kind={kind}" for kind in kinds) if kinds else ""))
        self.socket = self.connection.sock  # which the answer takes over
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        assert self.answer.headers["Content-Type"] == "text/event-stream"
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        kind = None
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            for line in iter(self.answer.readline, b""):
                if line.startswith(b"event: "):
                    kind = line[7:].strip().decode()
                if line.startswith(b"data: "):
                    self.seen.append((kind, json.loads(line[6:])))

    def of(self, kind):
        return [data for name, data in list(self.seen) if name == kind]

    def await_one(self, kind, condition=lambda data: True):
        support.wait_for(lambda: any(condition(data) for data in self.of(kind)), f"an event {kind}")
        return next(data for data in self.of(kind) if condition(data))

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # the thread that reads holds it, too
        self.connection.close()


def openssl(*args, cwd):
    subprocess.run(["openssl", *map(str, args)], cwd=cwd, check=True, capture_output=True)


def make_certificates(folder):
    """A CA, another CA, a server's certificate for 127.0.0.1, and clients' of every kind."""
    for name in ["ca", "other"]:
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key",
                "-out", f"{name}.pem", "-subj", f"/CN={name}", "-days", 2, cwd=folder)
    kinds = {"server": ("/CN=server", "serverAuth", "ca", 1), "query": ("/CN=q/OU=query", "clientAuth", "ca", 1),
             "plain": ("/CN=p", "clientAuth", "ca", 1), "metrics": ("/CN=m/OU=metrics", "clientAuth", "ca", 1),
             "stranger": ("/CN=s/OU=gardening", "clientAuth", "ca", 1), "foreign": ("/CN=f", "clientAuth", "other", 1),
             "wrong-use": ("/CN=w", "serverAuth", "ca", 1), "expired": ("/CN=e", "clientAuth", "ca", -1)}
    for name, (subject, use, ca, days) in kinds.items():
        (folder / f"{name}.ext").write_text(f"extendedKeyUsage={use}\nsubjectAltName=IP:127.0.0.1\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out",
                f"{name}.csr", "-subj", subject, cwd=folder)
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial", "-out",
                f"{name}.pem", "-days", days, "-extfile", f"{name}.ext", cwd=folder)
    return folder
