"""The metadata of the package."""

from __future__ import annotations

import re

from conftest import REPOSITORY

FOLDER = REPOSITORY / "sdk" / "python"


def test_the_oldest_promised_python_is_the_one_that_is_checked() -> None:
    project = (FOLDER / "pyproject.toml").read_text()
    [promised] = re.findall(r'^requires-python = ">=(.*)"$', project, re.M)
    # Types are checked and packages are locked for it; pytest needs nothing newer.
    assert re.findall(r'^python_version = "(.*)"$', project, re.M) == [promised]
    locked = (FOLDER / "requirements.in").read_text()
    assert re.findall(r"--python-version (\S+)", locked) == [promised]
    listed = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    assert listed[0] == promised
    assert f"Python {promised} or later" in (FOLDER / "README.md").read_text()
