"""Build hook: generates `kafila.v1` from the protos, and puts the protos into source archives."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GenerateHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs `generate.py` before files are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        sys.path.insert(0, str(root))
        import generate

        protos = generate.proto_root(root)
        if self.target_name == "sdist":
            build_data["force_include"][str(protos / "kafila" / "v1")] = "proto/kafila/v1"
        else:
            generate.generate(protos, root / "src")
