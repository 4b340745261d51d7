"""`R/identity-gui`: the questions of a runtime to its user at a login (ADR-03).

| request | meaning | value of the answer |
|---|---|---|
| `read` | whether a user can be asked | `{"present": true}` |
| `execute` `openPopup` `{"urlreq": URL}` | show a login page | the result of the page |
| `create` `{"value": {"identities", "idps"}}` | have the user choose one of them | the choice |

The words are upstream's. Components of the own runtime read; only its user agent (`R/ua`) and its
identity module (`R/idm`) show pages and have the user choose: a hyperty that could would show a
page of its own, and get the codes that log its user in. Others are answered 403. A runtime without
an `IdentityGui` has no display: it answers 404. The user sees one question at a time, and has
`GUI_TIMEOUT` seconds for it (408); the requester meanwhile gets 100 every `GUI_PROGRESS` seconds.
"""

from collections.abc import Sequence
from typing import Final

import trio
from typing_extensions import override

from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor, Delivery
from actors.kit.supervision.supervisor import Crash
from actors.runtime.bus.ports import CorePort
from actors.runtime.discovery.identity_gui import IdentityGui
from specs.bodies.session import OPEN_POPUP
from specs.errors import BadMessageError
from specs.jsonvalue import Json
from specs.limits.discovery import GUI_PROGRESS, GUI_TIMEOUT, GUI_URL, GUI_WAITING
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from transports.urls import is_plain

_log = get_logger("actors.runtime")

_URL: Final = "urlreq"
_ASKERS: Final = ("ua", "idm")
"""Parts of a runtime that ask its user."""

_WEB: Final = ("https://", "http://")


class IdentityGuiPart(Actor[Delivery]):
    """Passes questions of the parts that log in on to the application.

    Args:
        port: Its port.
        gui: The dialogs of the application; None: it has no display.
    """

    def __init__(self, port: CorePort, gui: IdentityGui | None) -> None:
        self._port: Final = port
        self._gui: Final = gui
        runtime = port.url.rpartition("/")[0]
        self._askers: Final = frozenset(f"{runtime}/{part}" for part in _ASKERS)
        self._turn = trio.Lock()
        self._waiting = 0

    @override
    async def start(self) -> None:
        await self._port.add_listener(self._port.url, self.me)

    @override
    async def handle(self, message: Delivery) -> None:
        request = message.message
        if not request.is_request:
            return
        answer = self._at_once(request, is_foreign=message.is_foreign)
        if answer is not None:
            await self._port.post(answer)
            return
        self._waiting += 1
        self.spawn(self._answer, request)

    def _at_once(self, request: Message, *, is_foreign: bool) -> Message | None:
        """Return the answer to a request that needs no dialog with the user; None: it needs one."""
        is_read = request.type is MessageType.READ
        why = self._objection(request, is_foreign=is_foreign, is_read=is_read)
        if why is not None:
            return refuse(request, Code.FORBIDDEN, why)
        if is_read:
            return reply_to(request, Code.OK, {"value": {"present": self._gui is not None}})
        if self._gui is None:
            return refuse(request, Code.NOT_FOUND, "this runtime shows its user nothing")
        try:
            _read(request)
        except BadMessageError as error:
            return refuse(request, error.code, error.reason)
        if self._waiting > GUI_WAITING:
            return refuse(request, Code.UNAVAILABLE, "the user has enough to answer")
        return None

    def _objection(self, request: Message, *, is_foreign: bool, is_read: bool) -> str | None:
        if is_foreign:
            return f"{self._port.url} answers the components of its own runtime only"
        if is_read or request.from_ in self._askers:
            return None
        return "only the parts of a runtime that log its user in ask the user"

    async def _answer(self, request: Message) -> None:
        answer = refuse(request, Code.TIMEOUT, "the user took too long")
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep_waiting, request)
                with trio.move_on_after(GUI_TIMEOUT):
                    async with self._turn:
                        answer = await self._ask_user(request)
                nursery.cancel_scope.cancel()
        finally:
            self._waiting -= 1
        await self._port.post(answer)

    async def _keep_waiting(self, request: Message) -> None:
        while True:
            await self._port.post(reply_to(request, Code.TRYING))
            await trio.sleep(GUI_PROGRESS)

    async def _ask_user(self, request: Message) -> Message:
        gui, chosen = self._gui, None
        if gui is None:
            return refuse(request, Code.NOT_FOUND, "this runtime shows its user nothing")
        with Crash() as crash:
            match _read(request):
                case str() as url:
                    chosen = await gui.show(url)
                case identities, providers:
                    chosen = await gui.choose(identities, providers)
        if crash.error is not None:
            _log.warning("identity gui crashed", exc_info=crash.error)
            return refuse(request, Code.INTERNAL, "the user could not be asked")
        if chosen is None:
            return refuse(request, Code.FORBIDDEN, "the user gave no answer")
        return reply_to(request, Code.OK, {"value": chosen})


def _read(request: Message) -> str | tuple[Sequence[Json], Sequence[Json]]:
    """Return the login page to show, or the identities and providers to choose from.

    Raises:
        BadMessageError: The request is malformed, or the page may not be shown.
    """
    match request.type, request.body:
        case MessageType.EXECUTE, {"method": "openPopup", "params": {"urlreq": str() as url}}:
            # A page without TLS gives what the user types to everybody in between.
            if len(url) > GUI_URL or not url.startswith(_WEB) or is_plain(url):
                raise BadMessageError(f"params.{_URL} is no https URL")
            return url
        case MessageType.CREATE, {
            "value": {"identities": list() as identities, "idps": list() as providers}
        }:
            return identities, providers
        case _:
            raise BadMessageError(f"it knows create of a choice, and execute of {OPEN_POPUP}")
