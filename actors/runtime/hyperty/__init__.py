"""What an application writes, and the actor that it runs in."""
