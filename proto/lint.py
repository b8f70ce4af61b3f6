"""Rules of the protos that buf has not: names of requests and responses, comments on messages.

    buf build -o image.binpb && python lint.py < image.binpb

- The request of a unary RPC has the words of the RPC's name in order, and ends with Request:
  GetJobRequest for Jobs.Get. Its response ends with Response; several RPCs may share one.
- Messages of streams are named freely.
- Every other message has a comment. A request and a response are explained by their RPC.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet


def words(name: str) -> list[str]:
    return re.findall("[A-Z][a-z0-9]*", name)


def has_in_order(name: str, parts: list[str]) -> bool:
    left = iter(words(name))
    return all(part in left for part in parts)


def problems(file: FileDescriptorProto) -> Iterator[str]:
    for service in file.service:
        for rpc in service.method:
            where = f"{file.name}: {service.name}.{rpc.name}"
            request, response = rpc.input_type.split(".")[-1], rpc.output_type.split(".")[-1]
            if not rpc.client_streaming and not (
                request.endswith("Request") and has_in_order(request, words(rpc.name))
            ):
                yield f"{where}: the request {request} should be {rpc.name}…Request"
            if not rpc.server_streaming and not response.endswith("Response"):
                yield f"{where}: the response {response} should end with Response"
    # Path of a message in the file's descriptor: message_type (4), index.
    commented = {
        location.path[1]
        for location in file.source_code_info.location
        if len(location.path) == 2 and location.path[0] == 4 and location.leading_comments
    }
    for index, message in enumerate(file.message_type):
        if not message.name.endswith(("Request", "Response")) and index not in commented:
            yield f"{file.name}: the message {message.name} has no comment"


def main() -> None:
    image = FileDescriptorSet.FromString(sys.stdin.buffer.read())
    own = [file for file in image.file if file.package.startswith("kafila.")]
    found = [problem for file in own for problem in problems(file)]
    if not own:
        found = ["no protos on standard input"]
    if found:
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main()
