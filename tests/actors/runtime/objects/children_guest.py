"""A hyperty for a process of its own: it observes what it is ordered to, and adds children."""

import actors


class Guest(actors.Hyperty):
    """Observes an object on request, and answers each child of others with one of its own."""

    async def on_request(self, message):
        url = message.body["value"]
        self.spawn(self.observe_and_answer, url)
        return url

    async def observe_and_answer(self, url):
        async with self.observe(url) as copy:
            # From now on: the next child of others may be there before the answer.
            changes = copy.children.changes()
            mine = await copy.children.create({"hello": len(copy.children)})
            async for change in changes:
                if change.new is not None and not change.id.startswith(f"{self.url}#"):
                    await mine.update({"heard": change.new})
                elif change.new is None:
                    await mine.delete()
