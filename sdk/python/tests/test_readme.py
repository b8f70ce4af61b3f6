"""The examples of the README print what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from conftest import Suite

README = Path(__file__).parents[1] / "README.md"
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def test_every_example_prints_its_output(suite: Suite) -> None:
    text = README.read_text()
    examples = EXAMPLE.findall(text)
    assert len(examples) == text.count("```python") == 5
    for code, output in examples:
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            env={**os.environ, "KAFILA_ADDR": suite.address},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (ran.stdout, ran.stderr, ran.returncode) == (output, "", 0), code
