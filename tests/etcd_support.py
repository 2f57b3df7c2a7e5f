"""What etcd has of a job, and what a job has written; an etcd that cannot write."""
import base64
import contextlib
import http.server
import json
import threading
import urllib.request

from support import TIMEOUT_S


def ask_etcd(etcd, call, job, key="roster", **values):
    """What etcd answers to a call about the job's roster, or another of its keys; values are text."""
    values["key"] = f"/streamvec/{job}/{key}"
    asked = json.dumps({name: base64.b64encode(value.encode()).decode() for name, value in values.items()})
    with urllib.request.urlopen(f"{etcd}/v3/kv/{call}", data=asked.encode(), timeout=TIMEOUT_S) as answer:
        return json.loads(answer.read())


def call_etcd(etcd, path, **asked):
    with urllib.request.urlopen(f"{etcd}/v3/{path}", data=json.dumps(asked).encode(), timeout=TIMEOUT_S) as answer:
        return json.loads(answer.read())


@contextlib.contextmanager
def no_space_in(etcd):
    """As when its database has grown to its quota: it answers, and writes nothing."""
    call_etcd(etcd, "maintenance/alarm", action="ACTIVATE", memberID="1", alarm="NOSPACE")
    yield
    call_etcd(etcd, "maintenance/alarm", action="DEACTIVATE", memberID="1", alarm="NOSPACE")


@contextlib.contextmanager
def refusing(etcd, path, count):
    """The way to an etcd that refuses the first calls of that path after `start` is set; its address, and that."""
    start, left = threading.Event(), [count]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            refused = start.is_set() and self.path.endswith(path) and left[0] > 0
            left[0] -= refused
            if refused:
                return self.answer(503, b"{}")
            with urllib.request.urlopen(etcd + self.path, data=body, timeout=TIMEOUT_S) as answer:
                self.answer(200, answer.read())

        def answer(self, status, text):
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", start
        server.shutdown()


def roster_text(etcd, job):
    found = ask_etcd(etcd, "range", job).get("kvs", [])
    return base64.b64decode(found[0]["value"]).decode() if found else "0"


def roster(etcd, job):
    """Ids and addresses of those that take part, as the leader has written them down; none before it begins."""
    lines = roster_text(etcd, job).splitlines()
    return {} if lines[0].split()[0] == "0" else {line.split()[0]: line.split()[-1] for line in lines[1:]}


def files_of(model):
    """All of a model's directory, and when each was written."""
    return sorted((str(path), path.stat().st_mtime_ns) for path in model.rglob("*"))
