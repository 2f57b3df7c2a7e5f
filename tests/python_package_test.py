"""What import streamvec comes as: type stubs, docstrings, the wheel, and the pages that show it."""
import ast
import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest
import support
from python_support import MODULE, ROOT, streamvec


def stub_signatures():
    """name -> parameter names, of every function, class and member that _native.pyi has."""
    found = {}
    for node in ast.parse((ROOT / "python/streamvec/_native.pyi").read_text()).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = node.name + "." if isinstance(node, ast.ClassDef) else ""
        for member in members:
            if isinstance(member, ast.FunctionDef):
                names = [arg.arg for arg in member.args.posonlyargs + member.args.args + member.args.kwonlyargs]
                found.setdefault(prefix + member.name, set()).add(tuple(name for name in names if name != "self"))
            elif isinstance(member, ast.AnnAssign):
                found[prefix + member.target.id] = None
    return found


class TestTypes:
    def test_the_stub_has_what_the_module_has(self):
        native = streamvec._native
        stub = stub_signatures()
        for name in ["WordVectors", "TrainProgress", "Document"]:
            kind = getattr(native, name)
            written = {member.split(".")[1] for member in stub if member.startswith(name + ".")}
            there = {member for member, value in vars(kind).items()
                     if not member.startswith("__") or (member in written) or
                     (callable(value) and member not in ("__new__", "__init__", "__getattribute__") and value.__doc__ is not None
                      and member in ("__len__", "__iter__", "__getitem__", "__contains__", "__repr__"))}
            assert written - {"__init__"} == there - {"__init__"}
        top = {name for name in stub if "." not in name} | {"WordVectors", "TrainProgress", "Document", "Error", "ResourceError"}
        assert top == {name for name in vars(native) if not name.startswith("__") or name == "__version__"}

    def test_the_stub_names_the_arguments_that_the_module_takes(self):
        for name, signatures in stub_signatures().items():
            target = streamvec._native
            for part in name.split("."):
                target = getattr(target, part, None)
            if signatures is None or isinstance(target, property) or name.split(".")[-1].startswith("__"):
                continue
            line = target.__doc__.splitlines()[0]  # pybind11 writes the signature there
            names = tuple(re.findall(r"(?:\(|, )(?!\*)(\w+)(?=:)", line))
            assert {tuple(name for name in names if name != "self")} == signatures, line

    def test_mypy_takes_the_package_and_finds_a_users_mistakes(self, tmp_path):
        if subprocess.run([sys.executable, "-m", "mypy", "--version"], capture_output=True).returncode != 0:
            pytest.skip("mypy is not here")
        user = tmp_path / "user.py"
        user.write_text("import streamvec\n"
                        "documents = (['a', 'b'] for _ in range(3))\n"
                        "done: int = streamvec.train(documents=documents, out='m', progress=lambda now: print(now.loss)).tokens\n"
                        "v = streamvec.load('m')\n"
                        "near: list[tuple[str, float]] = v.most_similar(positive=['king', v['woman']], negative='man', topn=3)\n"
                        "row: float = float(v['king'].sum() + v[['king', 'queen']][0, 0] + v.vectors[0, 0])\n"
                        "again = streamvec.from_gensim(streamvec.to_gensim(v)).get_vector('king', norm=True)\n"
                        "streamvec.train('corpus.txt', out='m', dim='many')\n"
                        "score: str = v.similarity('a', 'b')\n")
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "-p", "streamvec"],
                              capture_output=True, text=True, env={**os.environ, "MYPYPATH": MODULE})
        assert done.returncode == 0, done.stdout + done.stderr
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", user],
                              capture_output=True, text=True, env={**os.environ, "MYPYPATH": MODULE})
        assert re.findall(r"user.py:(\d+): error", done.stdout) == ["8", "9"], done.stdout + done.stderr

    def test_every_name_has_a_docstring(self):
        for name in streamvec.__all__:
            if name != "__version__":
                assert getattr(streamvec, name).__doc__, name
        for name, member in vars(streamvec.WordVectors).items():
            if not name.startswith("_"):
                assert member.__doc__ and len(member.__doc__.splitlines()[-1]) > 8, name

    def test_train_takes_every_option_that_there_is(self):
        taken = [name for name in inspect.signature(streamvec.train).parameters]
        assert taken[:5] == ["sources", "out", "documents", "progress", "counting"]
        assert sorted(taken[5:]) == sorted(streamvec._native.option_names)
        header = (ROOT / "streamvec/train/trainer.h").read_text()
        fields = re.search(r"struct TrainOptions \{(.*?)\n\};", header, re.DOTALL)[1]
        names = set(re.findall(r"(\w+)(?:\s*=[^;,]*)?(?=[;,])", re.sub(r"//.*", "", fields)))
        assert names - {"glove", "tokenizer", "stream", "cluster"} <= set(taken)

    def test_names_and_arguments_are_those_of_cpp(self):
        text = re.sub(r"//.*", "", (ROOT / "streamvec/api/word_vectors.h").read_text())
        public = re.search(r"class WordVectors \{\n public:(.*?)\n private:", text, re.DOTALL)[1]
        methods = dict(re.findall(r"[ &](\w+)\(([^()]*)\)(?: const)?(?:;| \{)", public))
        stub = stub_signatures()
        # Python's own ways for these: len(v), v.get_index(), v.index_to_key, v.counts, v.vectors.
        own = {"size", "find", "word", "count", "snapshot"}
        assert {"load", "most_similar", "similarity", "get_vector", "vectors"} <= set(methods)
        for name in set(methods) - own:
            (python,) = stub["WordVectors." + name]
            cpp = tuple(re.findall(r"(\w+)(?: = [^,]*)?(?:,|$)", methods[name]))
            assert python[:len(cpp)] == tuple(one for one in cpp if one != "notes"), name
        header = re.sub(r"//.*", "", (ROOT / "streamvec/train/trainer.h").read_text())
        fields = re.search(r"struct TrainProgress \{(.*?)\n\};", header, re.DOTALL)[1]
        told = {name.split(".")[1] for name in stub if re.match(r"TrainProgress\.[a-z]", name)}
        assert told <= set(re.findall(r"(\w+)(?:\s*=[^;,]*)?(?=[;,])", fields))


class TestPages:
    def test_keywords_that_the_command_line_names_otherwise_are_told(self):
        options = re.findall(r'^ +\{"([a-z-]+)", Kind::', (ROOT / "apps/streamvec/table.cc").read_text(), re.MULTILINE)
        own = set(streamvec._native.option_names) - {option.replace("-", "_") for option in options}
        told = set(re.findall(r"`(\w+)(?:=False)?`", (ROOT / "docs/PYTHON.md").read_text()))
        assert {"character_dim", "fold_case"} <= own <= told

    def test_the_fields_of_the_progress_are_told(self):
        fields = {name for name in vars(streamvec.TrainProgress) if not name.startswith("_")}
        assert fields <= set(re.findall(r"`(\w+)`", (ROOT / "docs/PYTHON.md").read_text()))


class TestPackage:
    @pytest.mark.parametrize("prefix", ["/usr/local", "/usr"])
    def test_what_is_installed_lies_where_debians_python_looks(self, prefix, tmp_path):
        look = "import sys; print(*sys.path, sep='\\n')"
        paths = subprocess.run(["/usr/bin/python3", "-I", "-c", look], capture_output=True, text=True).stdout.splitlines()
        if not any(path.endswith("dist-packages") for path in paths):
            pytest.skip("this Python is not Debian's")
        subprocess.run(["cmake", "--install", pathlib.Path(MODULE).parent, "--prefix", prefix, "--component", "python"],
                       check=True, capture_output=True, env={**os.environ, "DESTDIR": str(tmp_path)})
        (found,) = [path for path in paths if (tmp_path / path.lstrip("/") / "streamvec/__init__.py").is_file()]
        assert found.startswith(prefix + "/lib")

    def test_the_wheel_installs_without_a_network(self, tmp_path):
        wheels = list(pathlib.Path(MODULE).glob("streamvec-*.whl"))
        assert len(wheels) == 1
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", tmp_path / "venv"], check=True)
        python = tmp_path / "venv/bin/python"
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", wheels[0]],
                       check=True, env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"})
        code = "import streamvec; print(streamvec.__file__, streamvec.__version__)"
        done = subprocess.run([python, "-I", "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path)
        where, version = done.stdout.split()
        assert where.startswith(str(tmp_path / "venv")) and f"-{version}-" in wheels[0].name
        listed = subprocess.run([python, "-m", "pip", "show", "-f", "streamvec"], check=True, capture_output=True, text=True)
        assert "streamvec/py.typed" in listed.stdout and "Version: " + version in listed.stdout

    def test_a_wheel_is_the_same_however_often_it_is_made(self, tmp_path):
        """By the functions that pip calls for `pip install .`, less the compiling."""
        sys.path.insert(0, str(ROOT / "python"))
        make_wheel = pytest.importorskip("make_wheel")
        assert make_wheel.get_requires_for_build_wheel() == [] and make_wheel.project_version() == streamvec.__version__
        names = {make_wheel.write_wheel(pathlib.Path(MODULE) / "streamvec", streamvec.__version__, tmp_path / out) for out in "ab"}
        (name,) = names
        built = (pathlib.Path(MODULE) / name).read_bytes()
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() == built

    @pytest.mark.parametrize("page", ["README.md", "docs/PYTHON.md"])
    def test_the_code_of_a_page_runs(self, page, tmp_path):
        """Its ```python blocks in order, in one folder with corpus.txt; a comment `# -> text` after an expression is
        what it gives."""
        blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
        assert blocks
        (tmp_path / "corpus.txt").write_text(support.topical_text(30_000) + "king queen man woman throne crown\n" * 300)
        code = re.sub(r"^(\S.*?)\s+# -> (.*)$", lambda m: f"assert str({m[1]}) == {m[2]!r}, str({m[1]})", "\n".join(blocks),
                      flags=re.MULTILINE)
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300,
                              env={**os.environ, "PYTHONPATH": MODULE})
        assert done.returncode == 0, done.stdout + done.stderr
