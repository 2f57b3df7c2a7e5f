"""The Python module of the build under test; without one its tests are skipped."""
import os
import pathlib
import sys

import pytest
import support

MODULE = os.environ.get("STREAMVEC_PYTHON_PATH", str(pathlib.Path(support.PROGRAM).parent / "python"))
if not (pathlib.Path(MODULE) / "streamvec").is_dir():
    pytest.skip("this build has no Python module", allow_module_level=True)
sys.path.insert(0, MODULE)
numpy = pytest.importorskip("numpy")
import streamvec  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
