"""The stub `rest-registry`, for a domain with a registry behind REST and without a node (PFY-13).

Registration, status and search go to the registry, by the calls of a node's REST connector. The
stub itself allocates random addresses for the hyperties of its runtime. All other requests are
answered 404: without a node, no messages are carried, no direct links are set up, and no changes
are reported.
"""

from typing import Final
from uuid import UUID

from typing_extensions import override

from actors.kit.back_ends.requests import Asked, RestRecords, answer_body, read_request
from actors.runtime.stubs.client_server.stub import ClientServerStub
from actors.runtime.stubs.stub import StubContext
from fsm.registry.records import Answered, Create, Find, Read, Touch
from specs.addresses.address import address_allocation, domain_registry, session_manager
from specs.bodies.registry import Allocate, Allocated
from specs.bodies.session import SessionControl
from specs.bodies.word import SessionMethod
from specs.errors import BadMessageError
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code
from transports.bodies import read_body, write_body

NAME: Final = "rest-registry"
_UUID_BYTES: Final = 16


class RestRegistryStub(ClientServerStub):
    """Converts messages of one runtime to calls of a registry behind REST.

    Args:
        context: Context of the stub.

    Raises:
        StubOptionError: The profile names no server, or has options; there are none.
    """

    def __init__(self, context: StubContext) -> None:
        super().__init__(NAME, context)
        config = context.config
        self._records = RestRecords(self.client)
        self._runtime = config.runtime
        self._none = f"{config.domain} has no message node"
        self._answers = {
            domain_registry(config.domain): self._of_registry,
            address_allocation(config.domain): self._of_allocation,
            session_manager(config.domain): self._of_sessions,
        }

    @override
    async def answer(self, request: Message) -> Message:
        answer = self._answers.get(request.to)
        if answer is None:
            why = f"{self._none}, so no message leads to {request.to[:80]}"
            return refuse(request, Code.NOT_FOUND, why)
        return await answer(request)

    @override
    def lane(self, request: Message) -> str:
        value = request.body.get("value")
        url = value.get("url") if isinstance(value, dict) else request.body.get("resource")
        return url if isinstance(url, str) else request.to

    @override
    async def disconnecting(self) -> None:
        for url in self._records.left(self._runtime):
            await self._records.disconnect(url)

    async def _of_registry(self, request: Message) -> Message:
        said = await self._said(Asked(request, self._runtime, self._runtime))
        return reply_to(request, said.code, answer_body(said))

    async def _said(self, asked: Asked) -> Answered:
        match read_request(asked):
            case Create() as create:
                return (await self._records.create(create)).said
            case Touch() as touch:
                return (await self._records.touch(touch)).said
            case Read() | Find() as read:
                return await self._records.read(read)

    async def _of_allocation(self, request: Message) -> Message:
        """Allocate random addresses, which are unique without a node."""
        if request.type is MessageType.DELETE:
            return reply_to(request, Code.OK)
        if request.type is not MessageType.CREATE:
            raise BadMessageError("addresses can be created and deleted only")
        asked = read_body(request, Allocate)
        made = tuple(
            f"{asked.scheme}://{self.context.config.domain}/{self._name()}"
            for _ in range(asked.value.number)
        )
        return reply_to(request, Code.OK, {"value": write_body(Allocated(made))})

    def _name(self) -> str:
        return str(UUID(bytes=self.context.entropy(_UUID_BYTES), version=4))

    async def _of_sessions(self, request: Message) -> Message:
        """Answer pings; refuse all other session controls, as there is no node."""
        method = read_body(request, SessionControl).method
        if method == SessionMethod.PING:
            return reply_to(request, Code.OK)
        return refuse(request, Code.NOT_FOUND, f"{self._none}, so there are no sessions")
