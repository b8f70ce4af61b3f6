"""A gateway whose answers are scripted, and a proxy that breaks connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any

import grpc

from kafila.v1 import services

METHODS = {
    method.path: method
    for service in vars(services).values()
    if isinstance(service, type)
    for method in vars(service).values()
    if hasattr(method, "path")
}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class FakeGateway:
    """Serves RPCs with functions of the request and the context; notes the requests."""

    def __init__(self, credentials: grpc.ServerCredentials | None = None) -> None:
        self.requests: list[Any] = []
        self.metadata: list[dict[str, Any]] = []
        self._answers: dict[str, Callable[..., Any]] = {}
        self._server = grpc.server(futures.ThreadPoolExecutor(8))
        self._server.add_generic_rpc_handlers((self,))
        if credentials is None:
            self.port = self._server.add_insecure_port("127.0.0.1:0")
        else:
            self.port = self._server.add_secure_port("127.0.0.1:0", credentials)
        self.address = f"{'http' if credentials is None else 'https'}://127.0.0.1:{self.port}"
        self._server.start()

    def on(self, path: str, answer: Callable[..., Any]) -> None:
        """`answer(request, context)` is a message, or an iterator of them for streams."""
        self._answers[f"/kafila.v1.{path}"] = answer

    def stop(self) -> None:
        self._server.stop(None).wait()

    def service(self, details: Any) -> grpc.RpcMethodHandler | None:
        answer = self._answers.get(details.method)
        if answer is None:
            return None
        method = METHODS[details.method]

        def handle(request: Any, context: grpc.ServicerContext) -> Any:
            self.requests.append(request)
            self.metadata.append(dict(context.invocation_metadata()))
            return answer(request, context)

        is_stream = details.method.endswith(("/Stream", "/Logs"))
        handler = (
            grpc.unary_stream_rpc_method_handler
            if is_stream
            else grpc.unary_unary_rpc_method_handler
        )
        return handler(handle, method.request.FromString, method.response.SerializeToString)


def fail(code: grpc.StatusCode, text: str = "scripted", detail: Any = None) -> Callable[..., Any]:
    """Returns an answer that fails."""

    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        if detail is not None:
            context.set_trailing_metadata((("kafila-error-bin", detail.SerializeToString()),))
        context.abort(code, text)

    return answer


def in_turn(*answers: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an answer that uses one of `answers` after the other, the last one for ever."""
    left = list(answers)

    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        return (left.pop(0) if len(left) > 1 else left[0])(request, context)

    return answer


class Proxy:
    """Forwards connections to a gateway, and loses answers on demand."""

    def __init__(self, target: str) -> None:
        host, port = target.split(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.lost = 0
        """Number of broken connections."""
        self._losing = False
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_next_answer(self) -> None:
        """The next bytes from the gateway are dropped, and their connection is closed."""
        self._losing = True

    def cut(self) -> None:
        """Closes all connections."""
        for end in self._open:
            _close(end)
        self._open.clear()

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
            except OSError:
                return
            self._open += [client, server]
            for pump in (self._pump_up, self._pump_down):
                threading.Thread(target=pump, args=(client, server), daemon=True).start()

    @staticmethod
    def _pump_up(client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(65_536):
                server.sendall(data)
        except OSError:
            pass
        _close(server)

    def _pump_down(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := server.recv(65_536):
                # An answer has a body; acknowledgements and pings are 17 bytes at most.
                if self._losing and len(data) > 40:
                    self._losing = False
                    self.lost += 1
                    break
                client.sendall(data)
        except OSError:
            pass
        _close(client)
        _close(server)


def _close(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()
