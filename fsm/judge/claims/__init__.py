"""The claims about messages, tables and links, each declared once over the records of a process."""
