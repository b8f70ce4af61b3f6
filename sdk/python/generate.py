"""Generates `src/kafila/v1` from the protos: messages, type stubs, and a class for each service.

    python generate.py            writes src/kafila/v1
    python generate.py --check    fails if src/kafila/v1 differs from the protos

Needs grpcio-tools and mypy-protobuf. The build hook calls `generate`, so an installed package
always has the messages of the protos that it was built from.
"""

from __future__ import annotations

import filecmp
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)

PACKAGE = "kafila/v1"

STREAM_COMMENT = """
 Not repeated after an error. `timeout` is for the whole stream (None: no limit), `silence` for the
 time between two messages."""


def proto_root(project: Path) -> Path:
    """Returns the folder of the protos: in a source archive, or in the repository."""
    for root in (project / "proto", project / ".." / ".." / "proto"):
        if (root / PACKAGE).is_dir():
            return root.resolve()
    raise SystemExit(f"no {PACKAGE}/*.proto found near {project}")


def generate(protos: Path, out: Path) -> None:
    """Writes the package `kafila.v1` below `out`, which replaces an earlier one."""
    target = out / PACKAGE
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    files = sorted(
        path.relative_to(protos).as_posix() for path in (protos / PACKAGE).glob("*.proto")
    )
    with tempfile.TemporaryDirectory() as scratch:
        descriptors = Path(scratch) / "descriptors"
        compile_protos(protos, files, out, descriptors)
        found = FileDescriptorSet.FromString(descriptors.read_bytes())
    own = [file for file in found.file if file.name in files]
    (target / "__init__.py").write_text(init_module(own))
    (target / "services.py").write_text(services_module(own, asynchronous=False))
    (target / "aio_services.py").write_text(services_module(own, asynchronous=True))


def compile_protos(protos: Path, files: list[str], out: Path, descriptors: Path) -> None:
    """Runs protoc with the plugin for type stubs."""
    import grpc_tools
    from grpc_tools import protoc

    well_known = Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as scratch:
        # The script of mypy-protobuf may not be on the path of an isolated build.
        plugin = Path(scratch) / "protoc-gen-mypy"
        plugin.write_text(f"#!{sys.executable}\nfrom mypy_protobuf.main import main\nmain()\n")
        plugin.chmod(0o755)
        arguments = [
            "protoc",
            f"-I{protos}",
            f"-I{well_known}",
            f"--plugin=protoc-gen-mypy={plugin}",
            f"--python_out={out}",
            f"--mypy_out=quiet:{out}",
            f"--descriptor_set_out={descriptors}",
            "--include_imports",
            "--include_source_info",
            *files,
        ]
        if protoc.main(arguments) != 0:
            raise SystemExit("protoc failed")


def init_module(files: list[FileDescriptorProto]) -> str:
    """Returns a module that exports every message and enum."""
    lines = ['"""Messages of the API kafila.v1, generated from its protos."""', ""]
    exported: list[str] = []
    for file in files:
        names = sorted(
            [message.name for message in file.message_type]
            + [enum.name for enum in file.enum_type]
            + [value.name for enum in file.enum_type for value in enum.value]
        )
        if not names:
            continue
        exported += names
        lines.append(f"from kafila.v1.{module_of(file)} import (")
        lines += [f"    {name} as {name}," for name in names]
        lines.append(")")
    lines += ["", "__all__ = ["] + [f'    "{name}",' for name in sorted(exported)] + ["]"]
    return "\n".join(lines) + "\n"


def module_of(file: FileDescriptorProto) -> str:
    return Path(file.name).stem + "_pb2"


class Rpc(NamedTuple):
    """One RPC, with the Python expressions of its types."""

    name: str
    path: str
    request: str
    response: str
    has_request_id: bool
    streams: bool
    is_read: bool
    """The request has `options`, the response has `meta`."""
    item: str
    """Type of the only list of the response; empty: not a list."""
    item_field: str
    comment: str


def services_module(files: list[FileDescriptorProto], *, asynchronous: bool) -> str:
    """Returns a module with a class for each service."""
    messages = {
        f".{file.package}.{message.name}": (module_of(file), message)
        for file in files
        for message in file.message_type
    }
    services = [
        (service, rpcs_of(file, index, service, messages))
        for file in files
        for index, service in enumerate(file.service)
    ]
    used = {
        expression.split(".")[0]
        for _, rpcs in services
        for rpc in rpcs
        for expression in (rpc.request, rpc.response, rpc.item)
        if expression
    }
    iterator = "AsyncIterator" if asynchronous else "Iterator"
    generator = "AsyncGenerator" if asynchronous else "Generator"
    caller = "AsyncCaller" if asynchronous else "Caller"
    lines = [
        '"""Services of the API kafila.v1, generated from its protos."""',
        "",
        "from __future__ import annotations",
        "",
        f"from typing import {generator}, {iterator}, Optional",
        "",
        f"from kafila.{'_async' if asynchronous else '_sync'} import {caller}",
        "from kafila._method import Method",
        f"from kafila.v1 import {', '.join(sorted(used))}",
    ]
    for service, rpcs in services:
        lines += [
            "",
            "",
            f"class {service.name}:",
            f'    """RPCs of kafila.v1.{service.name}."""',
            "",
        ]
        lines += [
            f"    def __init__(self, caller: {caller}) -> None:",
            "        self._caller = caller",
        ]
        for rpc in rpcs:
            lines += rpc_lines(rpc, asynchronous)
    lines += ["", "", "class AllServices:", '    """All services, as attributes."""', ""]
    lines += [f"    def __init__(self, caller: {caller}) -> None:"]
    lines += [
        f"        self.{snake(service.name)} = {service.name}(caller)" for service, _ in services
    ]
    return "\n".join(lines) + "\n"


def rpc_lines(rpc: Rpc, asynchronous: bool) -> list[str]:
    """Returns the methods of one RPC: the call, and iterators of items and of changes."""
    prefix, wait = ("async ", "await ") if asynchronous else ("", "")
    iterator = "AsyncIterator" if asynchronous else "Iterator"
    name = snake(rpc.name)
    constant = f"_{name}_method"
    lines = [
        "",
        f"    {constant} = Method(",
        f'        "{rpc.path}",',
        f"        {rpc.request},",
        f"        {rpc.response},",
        f"        has_request_id={rpc.has_request_id},",
        "    )",
        "",
    ]
    parameters = f"self, request: {rpc.request}, *, timeout: Optional[float] = None"
    if rpc.streams:
        generator = f"AsyncGenerator[{rpc.response}, None]"
        if not asynchronous:
            generator = f"Generator[{rpc.response}, None, None]"
        lines += [
            f"    def {name}(",
            "        self,",
            f"        request: {rpc.request},",
            "        *,",
            "        timeout: Optional[float] = None,",
            "        silence: Optional[float] = None,",
            f"    ) -> {generator}:",
            *docstring(rpc.comment + STREAM_COMMENT),
            f"        return self._caller.stream(self.{constant}, request, timeout, silence)",
        ]
        return lines
    lines += [
        f"    {prefix}def {name}({parameters}) -> {rpc.response}:",
        *docstring(rpc.comment),
        f"        return {wait}self._caller.unary(self.{constant}, request, timeout)",
    ]
    if rpc.item:
        lines += [
            "",
            f"    def {name}_iter(",
            f"        self, request: {rpc.request}, *, timeout: Optional[float] = None",
            f"    ) -> {iterator}[{rpc.item}]:",
            f'        """Yields the items of `{name}`, page by page (`request.options.per_page`)."""',
            "        return self._caller.items(",
            f"            self.{constant}, request, timeout, lambda page: page.{rpc.item_field}",
            "        )",
        ]
    if rpc.is_read:
        lines += [
            "",
            f"    {prefix}def {name}_blocking(",
            f"        self, request: {rpc.request}, *, wait: float, timeout: Optional[float] = None",
            f"    ) -> {rpc.response}:",
            f'        """`{name}` once the index of the result exceeds `request.options.min_index`.',
            "",
            "        Answers after `wait` seconds in any case; `timeout` seconds are added to them.",
            '        """',
            f"        return {wait}self._caller.blocking(self.{constant}, request, wait, timeout)",
            "",
            f"    def {name}_watch(",
            f"        self, request: {rpc.request}, *, wait: float = 60.0",
            f"    ) -> {iterator}[{rpc.response}]:",
            f'        """Yields the answer of `{name}` now and after each change (blocking reads)."""',
            f"        return self._caller.watch(self.{constant}, request, wait)",
        ]
    return lines


def docstring(comment: str) -> list[str]:
    lines = comment.replace("\\", "\\\\").replace('"""', "'''").strip().splitlines()
    if len(lines) < 2:
        return [f'        """{"".join(lines)}"""']
    rest = [f"        {line.strip()}".rstrip() for line in lines[1:]]
    return [f'        """{lines[0].strip()}', *rest, '        """']


def rpcs_of(
    file: FileDescriptorProto,
    index: int,
    service: ServiceDescriptorProto,
    messages: dict[str, tuple[str, DescriptorProto]],
) -> list[Rpc]:
    # Path of a method in the file's descriptor: service (6), index, method (2), index.
    comments = {
        tuple(location.path): location.leading_comments
        for location in file.source_code_info.location
    }
    return [
        rpc_of(file, service, method, comments.get((6, index, 2, position), ""), messages)
        for position, method in enumerate(service.method)
        # Calls that send a stream need a terminal or a pipe: they are the command's.
        if not method.client_streaming
    ]


def rpc_of(
    file: FileDescriptorProto,
    service: ServiceDescriptorProto,
    method: MethodDescriptorProto,
    comment: str,
    messages: dict[str, tuple[str, DescriptorProto]],
) -> Rpc:
    request_module, request = messages[method.input_type]
    response_module, response = messages[method.output_type]
    fields = {field.name: field for field in request.field}
    is_read = "options" in fields and any(field.name == "meta" for field in response.field)
    lists = [
        field
        for field in response.field
        if field.label == FieldDescriptorProto.LABEL_REPEATED and field.type_name in messages
    ]
    item, item_field = "", ""
    if is_read and method.name.startswith("List") and len(lists) == 1:
        module, message = messages[lists[0].type_name]
        item, item_field = f"{module}.{message.name}", lists[0].name
    return Rpc(
        name=method.name,
        path=f"/{file.package}.{service.name}/{method.name}",
        request=f"{request_module}.{request.name}",
        response=f"{response_module}.{response.name}",
        has_request_id="request_id" in fields or "idempotency_token" in fields,
        streams=method.server_streaming,
        is_read=is_read and method.name.startswith(("Get", "List")),
        item=item,
        item_field=item_field,
        comment=comment,
    )


def snake(name: str) -> str:
    """Returns `ListJobs` as `list_jobs`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)[1:]


def differences(project: Path) -> list[str]:
    """Returns the generated files that differ from the protos."""
    with tempfile.TemporaryDirectory() as scratch:
        generate(proto_root(project), Path(scratch))
        fresh, present = Path(scratch) / PACKAGE, project / "src" / PACKAGE
        names = {path.name for root in (fresh, present) for path in root.glob("*.py*")}
        _, different, missing = filecmp.cmpfiles(fresh, present, sorted(names), shallow=False)
    return sorted(different + missing)


def main() -> None:
    project = Path(__file__).parent.resolve()
    if sys.argv[1:] == ["--check"]:
        stale = differences(project)
        if stale:
            raise SystemExit(
                f"src/{PACKAGE} differs from the protos: {', '.join(stale)}. Run generate.py."
            )
    elif sys.argv[1:]:
        raise SystemExit(__doc__)
    else:
        generate(proto_root(project), project / "src")


if __name__ == "__main__":
    main()
