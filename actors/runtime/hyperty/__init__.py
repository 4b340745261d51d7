"""The hyperties of an application, and the actor that runs each."""
