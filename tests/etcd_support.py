"""What etcd has of a job, and what a job has written."""
import base64
import json
import urllib.request


def ask_etcd(etcd, call, job, key="roster", **values):
    """What etcd answers to a call about the job's roster, or another of its keys; values are text."""
    values["key"] = f"/streamvec/{job}/{key}"
    asked = json.dumps({name: base64.b64encode(value.encode()).decode() for name, value in values.items()})
    with urllib.request.urlopen(f"{etcd}/v3/kv/{call}", data=asked.encode(), timeout=5) as answer:
        return json.loads(answer.read())


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
