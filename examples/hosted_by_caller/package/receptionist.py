"""Code of bob.example that runs at its callers: it takes messages for Bob while he is away."""

import actors


class Receptionist(actors.Hyperty):
    """Takes down what callers say."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    async def on_request(self, message: actors.Message) -> actors.Json:
        """Take a note; asked to `gossip`, it tries to tell somebody else what it has heard."""
        said = str(message.value)
        if said.startswith("gossip to "):
            answer = await self.request(said.removeprefix("gossip to "), self.notes)
            return f"{answer.code} {answer.body.get('description')}"
        self.notes.append(said)
        return f"{self.configuration['greeting']} I have {len(self.notes)} for Bob."
