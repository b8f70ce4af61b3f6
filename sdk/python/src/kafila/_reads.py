"""Pages and blocking reads: the next request, made from the last answer. No I/O."""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf.message import Message

Req = TypeVar("Req", bound=Message)

DEFAULT_PAGE = 500


def _options(request: Message) -> Any:
    # Every read of the API has a field `options`; no common type says so.
    return getattr(request, "options")


def next_page(request: Req, page: Message) -> Req | None:
    """Returns the request for the page after `page`; None: that was the last one."""
    token: str = getattr(page, "meta").next_token
    if not token:
        return None
    following = _copy(request)
    _options(following).next_token = token
    return following


def first_page(request: Req) -> Req:
    """Returns the request for the first page: a page size is set."""
    if _options(request).per_page:
        return request
    first = _copy(request)
    _options(first).per_page = DEFAULT_PAGE
    return first


def with_blocking(request: Req, index: int, wait: float) -> Req:
    """Returns the request that blocks until the result is newer than `index`, for `wait` seconds."""
    blocking = _copy(request)
    options = _options(blocking)
    options.min_index = index
    if index:
        options.wait.FromNanoseconds(int(wait * 1e9))
    return blocking


def _copy(request: Req) -> Req:
    copy = type(request)()
    copy.CopyFrom(request)
    return copy


class Watching:
    """The index of the last answer of a watched read."""

    def __init__(self) -> None:
        self.index = 0
        """0: the next read does not block."""

    def is_news(self, answer: Message) -> bool:
        """Notes the index of `answer`. False: nothing has changed."""
        index: int = getattr(answer, "meta").index
        if index == self.index:
            return False
        # An index that goes back belongs to a store restored from a backup. It is news as well.
        self.index = index
        return True
