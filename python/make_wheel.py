"""Wheels without a network: as a script, a wheel of a package that is built; as the backend of pyproject.toml, the same
after building it with CMake, so that `pip install .` works where the compiler and the libraries are there.

    make_wheel.py PACKAGE VERSION OUT     a wheel of the folder PACKAGE in the folder OUT
"""
import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import sysconfig
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUMMARY = "Word vectors that keep up with text that never stops"


def tag():
    """The Pythons and machines that the compiled part is for."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{re.sub('[-.]', '_', sysconfig.get_platform())}"


def metadata(version):
    return (f"Metadata-Version: 2.1\nName: streamvec\nVersion: {version}\nSummary: {SUMMARY}\nLicense: Apache-2.0\n"
            f"Requires-Python: ~={sys.version_info.major}.{sys.version_info.minor}.0\nRequires-Dist: numpy\n"
            "Provides-Extra: gensim\nRequires-Dist: gensim>=4; extra == 'gensim'\n")


def entry(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def write_wheel(package, version, out):
    """Returns the wheel's file name. Equal files give equal bytes."""
    info = f"streamvec-{version}.dist-info"
    files = {f"streamvec/{path.name}": path.read_bytes() for path in sorted(package.iterdir()) if path.is_file()}
    files[f"{info}/METADATA"] = metadata(version).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: streamvec\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode()
    files[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    record = "".join(entry(name, content) for name, content in files.items()) + f"{info}/RECORD,,\n"
    files[f"{info}/RECORD"] = record.encode()
    out.mkdir(parents=True, exist_ok=True)
    name = f"streamvec-{version}-{tag()}.whl"
    unfinished = out / (name + ".partial")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as wheel:
        for path, content in files.items():
            member = zipfile.ZipInfo(path)
            member.external_attr = (0o755 if path.endswith(".so") else 0o644) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(member, content)
    unfinished.rename(out / name)
    return name


def project_version():
    return re.search(r"project\(streamvec VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


# ---- PEP 517

def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = ROOT / "build/wheel"
    subprocess.run(["cmake", "-S", ROOT, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DSTREAMVEC_TESTS=OFF",
                    f"-DSTREAMVEC_PYTHON={sys.executable}"], check=True)
    subprocess.run(["cmake", "--build", build, "--parallel", "--target", "streamvec_python"], check=True)
    return write_wheel(build / "python/streamvec", project_version(), pathlib.Path(wheel_directory))


if __name__ == "__main__":
    print(write_wheel(pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])))
