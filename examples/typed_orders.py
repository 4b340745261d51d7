"""A shop whose requests and answers are attrs classes, and a customer who gets no wrong answer.

python examples/typed_orders.py
"""

import json

import attrs
import trio

import actors


@attrs.frozen
class Order:
    """What a customer wants.

    Attributes:
        title: Name of the thing.
        count: How many of it.
    """

    title: str
    count: int = 1


@attrs.frozen
class Receipt:
    """What the shop has sold."""

    number: int
    orders: tuple[Order, ...]


class Shop(actors.Hyperty):
    """Sells bolts."""

    def __init__(self) -> None:
        self.stock = {"bolt": 10}
        self.sold = 0

    @actors.handles("create", path="/orders")
    async def sell(self, orders: list[Order]) -> Receipt:
        """Sell what is ordered, if all of it is there."""
        for order in orders:
            if self.stock.get(order.title, 0) < order.count:
                raise actors.Refused(actors.Code.CONFLICT, f"too few of {order.title}")
        for order in orders:
            self.stock[order.title] -= order.count
        self.sold += 1
        return Receipt(self.sold, tuple(orders))

    @actors.handles("read", path="/stock")
    async def count(self) -> dict[str, int]:
        """Return what is there."""
        return self.stock


class Customer(actors.Hyperty):
    """Orders."""


async def main() -> None:
    """Order three times; the second order is refused, the third one is no order."""
    async with (
        actors.open_node("a.example") as node,
        actors.open_runtime("a.example", "shop", node=node.url) as there,
        actors.open_runtime("a.example", "home", node=node.url) as here,
    ):
        shop = await there.deploy(Shop)
        customer = await here.deploy(Customer)
        for orders in ([Order("bolt", 4)], [Order("nut")], ["bolt"]):
            try:
                answer = await customer.request(shop.url, orders, path="/orders")
                receipt = actors.read_as(answer.raise_for_code().value, Receipt)
            except actors.AnswerError as refused:
                print(refused.code, refused.description)
            else:
                print("receipt", receipt.number, *receipt.orders)
        with trio.fail_after(5):
            answer = await customer.request(shop.url, type_="read", path="/stock")
        print("left:", answer.value if answer.ok else "unknown")
        (found,) = await customer.discover(name="Shop")
        if found.message_schema is not None:
            print("its schema:", json.dumps(found.message_schema["$defs"])[:46], "...")


if __name__ == "__main__":
    trio.run(main)
