"""Routes of changes alone: each call returns what was asked of the host meanwhile."""

from fsm.sync.routes import ObserverRoute, ReportRoutes


class Asking:
    """Passes calls on to a core; one that returns nothing returns what the core has asked."""

    def __init__(self):
        self.done, self.core = [], None

    def __getattr__(self, name):
        found = getattr(self.core, name)
        if not callable(found):
            return found

        def call(*arguments, **terms):
            self.done.clear()
            result = found(*arguments, **terms)
            return list(self.done) if result is None else result

        return call


class LoneReportRoutes(Asking):
    """The links to observers, and the port: calls by name, with their arguments."""

    def __init__(self, runtime=""):
        super().__init__()
        self.core = ReportRoutes(self, runtime)

    def add_link(self, link):
        self.done.append(("add_link", link))

    def remove_link(self, link):
        self.done.append(("remove_link", link))

    def set_reached(self, *, is_all):
        self.done.append(("set_reached", is_all))


def lone_observer_route():
    """The route of an observed object: a move is the link, or None for the node."""
    asking = Asking()
    asking.core = ObserverRoute(asking.done.append)
    return asking
